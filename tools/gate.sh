#!/usr/bin/env bash
# What action.yml runs: a report on LOG, beside BASELINE where that file is there, with a gate for each line of FAIL_IF.
# The Markdown goes into the summary of the job; the exit code is that of demur report: 1 where a gate does not hold.
set -u
gates=()
while IFS= read -r condition; do
  [ -z "$condition" ] || gates+=(--fail-if "$condition")
done <<<"${FAIL_IF:-}"
logs=()
if [ -n "${BASELINE:-}" ] && [ -e "$BASELINE" ]; then
  logs+=("$BASELINE")
elif [ -n "${BASELINE:-}" ]; then
  echo "no baseline at $BASELINE yet: gates that compare are left out"
  kept=()
  for part in "${gates[@]+"${gates[@]}"}"; do
    case $part in
      --fail-if) ;;
      *" is "*) ;;
      *) kept+=(--fail-if "$part") ;;
    esac
  done
  gates=("${kept[@]+"${kept[@]}"}")
fi
summary=$(mktemp -d)/summary.md
# shellcheck disable=SC2086  # LOG and OPTIONS are several words
demur report "${logs[@]+"${logs[@]}"}" $LOG ${OPTIONS:-} "${gates[@]+"${gates[@]}"}" -o "${REPORT:-demur-report.html}" -o "$summary"
code=$?
[ ! -e "$summary" ] || cat "$summary" >>"${GITHUB_STEP_SUMMARY:-/dev/stdout}"
exit $code
