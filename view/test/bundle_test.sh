#!/usr/bin/env bash
# The committed pages are what the sources give, and the sources' types are right.
set -euo pipefail
cd "$(dirname "$(readlink -f view/build.mjs)")"
command -v node >/dev/null || { echo "skipped: no node; hint: apt-get install nodejs npm"; exit 0; }
[ -d node_modules/esbuild ] || { echo "skipped: no view/node_modules; hint: npm ci, in view/"; exit 0; }
npm run --silent check
