"""Columns that several tables of a study have."""

import pyarrow as pa

from tracekit.trace.schema import column

SETTING = column("setting", pa.string(), "recipe, parameters, interpreter and workload", role="setting")
VARIANT = column("variant", pa.string(), "compile settings", role="name")
WORKLOAD = column("workload", pa.string(), "training or inference")
MODEL = column("model", pa.string(), "model, or recipe", role="name")
DATA = column("data", pa.string(), "what it is trained on")
