"""The vocabulary: records, questions, models, attacks, results. Everything else is built from these words."""
