"""Audits: config, plan, jobs, store and run.

The package is also the verb: `leakmeter.audit(...)` runs an audit, although `leakmeter.audit` is where its code lives.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Verb(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from leakmeter.audit.verbs import audit

        return audit(*args, **kwargs)


sys.modules[__name__].__class__ = _Verb
