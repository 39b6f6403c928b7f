#!/usr/bin/env bash
# The pages of `view` and `compare` in Debian's Chromium: view/test/page_test.mjs, compare_test.mjs and labels_test.mjs.
set -euo pipefail
tool=$(readlink -f cli/xccl-synth)
cd "$(dirname "$(readlink -f view/build.mjs)")"
command -v node >/dev/null || { echo "skipped: no node; hint: apt-get install nodejs npm"; exit 0; }
[ -d node_modules/playwright-core ] || { echo "skipped: no view/node_modules; hint: npm ci, in view/"; exit 0; }
[ -x /usr/bin/chromium ] || { echo "skipped: no Chromium; hint: apt-get install chromium"; exit 0; }
node test/page_test.mjs "$tool"
node test/compare_test.mjs "$tool"
node test/labels_test.mjs "$tool"
