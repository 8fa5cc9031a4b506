"""Metrics: pure functions that turn scores into results with intervals.

intervals   exact rates, bounds, Holm              auc      AUC, p-values, ROC curve
roc         AUCs of many signals, in pairs         rates    TPR, achieved FPR, precision at thresholds
shapes      histograms                             compare  net of the best row that never asked the target
                                                   power    what the pools could have shown
"""
