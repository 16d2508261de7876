# What this project does, and how. `make help` lists it.

PYTHON ?= python3
VENV := .venv/bin/python
POSTGRES := $(VENV) local/postgres.py run

.DEFAULT_GOAL := help
.PHONY: help setup demo test check emails storm figures cleanup-figures build deploy

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

setup: ## Bring .venv to what local/requirements.txt says
	@$(PYTHON) local/install.py

demo: setup ## Deploy onto a local AWS, send events, show the emails (KEEP=1 leaves it running)
	@$(VENV) local/demo.py $(if $(KEEP),--keep)

test: setup ## Run everything: lints, unit, integration and end-to-end tests
	@$(VENV) tests/run.py

check: setup ## Run only formatting, clippy and unit tests: seconds, once built
	cargo fmt --check
	cargo clippy --all-targets -- --deny warnings
	cargo test --lib

emails: setup ## Write each email's event.schema.json, and previews to target/emails
	@$(POSTGRES) -- cargo run --quiet --example emails

storm: setup ## Storm the dev binary: kills, cuts, restarts, SES errors (MODE=lease SECONDS=600 SEED= EVENTS=)
	@case '$(MODE)' in ''|transaction|lease|hold|mixed) ;; *) echo 'MODE is transaction, lease, hold or mixed; without it, each' >&2; exit 1;; esac
	@STORM_SECONDS=$(or $(SECONDS),60) STORM_SEED=$(or $(SEED),$(shell date +%s)) STORM_EVENTS=$(EVENTS) \
		cargo test --quiet --test storm -- $(if $(MODE),$(MODE)::)

figures: setup ## Measure the release binary: size, start, memory after 1,000 emails
	@$(VENV) local/figures.py

cleanup-figures: setup ## Measure cleanup on 10 million rows, and the claims beside it: 15 minutes (ROWS=)
	@ROWS=$(ROWS) $(POSTGRES) --durable -- cargo bench --quiet --profile dev --bench cleanup

build: setup ## Build what `sam deploy` uploads
	PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/sam build

deploy: setup ## Build, migrate and deploy to AWS (STAGE=prod, OPTIONS= for sam deploy)
	@$(VENV) local/deployment.py --check $(or $(STAGE),default) $(OPTIONS)
	@$(MAKE) --no-print-directory build
	@$(VENV) local/deployment.py $(or $(STAGE),default) $(OPTIONS)
