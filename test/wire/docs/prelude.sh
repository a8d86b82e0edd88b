# Before the commands of a page: programs that go on until they are interrupted end after a while, and servers run beside the one of the test.
program=$RUNYARD_PROGRAM

for_a_while() {
  local code=0
  timeout 4 "$@" || code=$?
  [ $code -eq 124 ] || return $code
}

serve_for_a_while() {
  local folder output
  folder=$(mktemp -d)
  output=$folder/output
  touch "$output"
  "$program" "$@" --port 0 --data-dir "$folder/data" --accept-shared-host --json >"$output" 2>"$folder/log" &
  for _ in $(seq 300); do
    if grep -q '"event":"ready"' "$output"; then
      kill -INT $! && kill -INT $! && wait $!
      return
    fi
    sleep 0.1
  done
  cat "$folder/log"
  return 1
}

runyard() {
  case "$*" in
    serve\ *) serve_for_a_while "$@" ;;
    events\ * | logs\ *\ -f) for_a_while "$program" "$@" ;;
    *) "$program" "$@" ;;
  esac
}

curl() {
  case " $* " in
    *' -N '*) for_a_while curl --fail-with-body "$@" ;;
    *) command curl --fail-with-body "$@" ;;
  esac
}

# Runs a command of a page in this shell, so that variables stay.
page_command() {
  printf '\n+ %s\n' "$1"
  eval "$1" <<<'a value' || { printf 'ended with %s: %s\n' $? "$1"; exit 1; }
}
