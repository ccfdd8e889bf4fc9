# Everything a person or a machine does with this project: `make up` to use it, `make test` and `make lint` to change it.

SHELL := /bin/bash
BIN := .venv/bin
PYTHONS := python3.11 python3.12 python3.13 python3.14 python3
# What production settings ask for; these values open nothing.
PRODUCTION := BACKSTOP_ENV=production DJANGO_SECRET_KEY=$$($(BIN)/python -c 'import secrets; print(secrets.token_urlsafe(50))') \
	ALLOWED_HOSTS=backstop.example DATABASE_URL=postgresql://backstop_web@/backstop REDIS_URL=redis://127.0.0.1:6379/0

.PHONY: up install test lint format matrix chaos simulate bench

# Start everything on embedded defaults; Ctrl-C stops it. ARGS="--port 9000 --data DIR" says otherwise.
up: install
	@$(BIN)/python manage.py up $(ARGS)

install: .venv/made

# Made again, from nothing, when the pins change. They are complete, so pip need not resolve them, unless a Python wants more.
.venv/made: requirements.txt
	@for python in $(PYTHONS); do \
		if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$python; break; fi; \
	done; \
	[ -n "$$found" ] || { echo "Python 3.11 or newer was not found: install it first." >&2; exit 1; }; \
	$$found -c 'import venv, ensurepip' 2>/dev/null || { echo "$$found cannot make environments: install python3-venv first." >&2; exit 1; }; \
	echo "Installing what requirements.txt pins into .venv with $$($$found --version)."; \
	rm -rf .venv && $$found -m venv .venv && $(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps -r requirements.txt && \
	{ $(BIN)/python -m pip check --quiet || $(BIN)/python -m pip install --disable-pip-version-check --quiet -r requirements.txt; } && touch $@

# Every test, those in a browser included; their servers are stopped afterwards. Many wait for a lease: four share two cores.
# What is compiled is kept even where the machine says otherwise: many processes start, and each would compile it again.
test: export PYTHONDONTWRITEBYTECODE :=
test: install
	@$(BIN)/python -m tests.chromium
	@$(BIN)/python -m pytest -n 4 --dist loadgroup --no-loadscope-reorder; code=$$?; $(BIN)/python -m tests.servers; exit $$code

# Every fault point, every time that a conversation comes by it: the process is killed there, then all must end as if it had not.
# About eight minutes. ARGS="--point batch." says which points.
matrix: install
	@$(BIN)/python -m tests.matrix $(ARGS)

# Two minutes of random faults on an instance of its own, then a look at every row. ARGS="--seed 7" says otherwise.
chaos: install
	@$(BIN)/python manage.py chaos --seconds 120 $(ARGS)

# Charges and refunds through a provider of which 45 % of the calls fail, for about two minutes; then its money log is compared
# with the books. ARGS="--seed 7 --json" says otherwise.
simulate: install
	@$(BIN)/python manage.py simulate $(ARGS)

# How fast messages are settled beside a known queue, what a claim reads, how soon a charge is at the provider: lines of JSON.
# About five minutes, with nothing else running. ARGS="--only rate" says which question, "--quick" only whether it works.
bench: install
	@$(BIN)/python -m tests.bench $(ARGS)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy .
	$(BIN)/lint-imports
	$(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
	$(PRODUCTION) $(BIN)/python manage.py check --deploy --fail-level WARNING

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
