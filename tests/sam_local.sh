#!/usr/bin/env bash
# Checks that `sam local invoke` works for every file in events/. Exits with 77 where there can be no Docker engine.
cd "$(dirname "$0")/.." && exec .venv/bin/python tests/sam_local/check.py
