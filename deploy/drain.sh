#!/bin/sh
# Takes one Tollgate process out of service without losing a request: first out of the front, then it sends the process
# SIGTERM and waits until its requests have finished. Also puts a process back into the front.
#
#   drain.sh nginx FILE SERVER PID    FILE has the upstream block, SERVER as written there: 127.0.0.1:8787
#   drain.sh nginx-back FILE SERVER   after the new process answers /readyz
#   drain.sh envoy ADMIN PID          ADMIN is Envoy's admin address: http://127.0.0.1:9901
#   drain.sh envoy-back ADMIN
#
# Environment:
#   NGINX_CMD     the command that controls nginx, default "nginx"; "-t" and "-s reload" are added to it
#   FRONT_WAIT_S  pause between the change at the front and SIGTERM. Default 0 for nginx, which stops choosing the
#                 process within drain.lame_duck (5 s); 10 for Envoy, whose balancer must first see /ready fail
#   WAIT_S        longest time to wait for the end of the process, default 660: more than drain.deadline (10 min)
#
# Exit status: 0 done; 1 the front or the process failed (nothing was stopped, or the process still runs: the message
# says which); 2 wrong arguments.
set -eu

say() { printf 'drain: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }
usage() { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }

# Adds `down` to the server's line ($3 = down) or removes it ($3 = up), and reloads. If nginx refuses the file, the old
# one is restored, so that nginx can be restarted at any time.
mark_nginx() {
  file=$1 server=$2 state=$3
  [ -f "$file" ] || fail "there is no file $file; name the one that has the upstream block. Nothing was changed"
  # A hidden file: `include folder/*` would include other files in the folder, but not those that begin with a dot.
  kept=$(mktemp "$(dirname "$file")/.$(basename "$file").XXXXXX")
  cp -p "$file" "$kept"
  # Written in place, so that the file keeps its owner, mode and links.
  awk -v server="$server" -v state="$state" '
    $1 == "server" && ($2 == server || $2 == server ";") {
      found = 1
      gsub(/[ \t]+down;/, ";")
      gsub(/[ \t]+down[ \t]/, " ")
      if (state == "down") sub(/;/, " down;")
    }
    { print }
    END { if (!found) exit 3 }
  ' "$kept" > "$file" || {
    cat "$kept" > "$file"
    rm -f "$kept"
    fail "there is no line \`server $server\` in $file; nothing was changed"
  }
  # shellcheck disable=SC2086 # NGINX_CMD is a command with its arguments.
  if ! ${NGINX_CMD:-nginx} -t 2> "$kept.why"; then
    cat "$kept" > "$file"
    why=$(cat "$kept.why")
    rm -f "$kept" "$kept.why"
    fail "nginx refuses the file, which was put back; nothing was stopped: $why"
  fi
  # shellcheck disable=SC2086
  if ! ${NGINX_CMD:-nginx} -s reload; then
    cat "$kept" > "$file"
    rm -f "$kept" "$kept.why"
    fail "nginx could not be reloaded, and the file was put back; nothing was stopped (NGINX_CMD names another nginx)"
  fi
  rm -f "$kept" "$kept.why"
  say "nginx: $server is $state"
}

notify_envoy() {
  curl --silent --show-error --fail --max-time 5 --request POST --output /dev/null "$1/healthcheck/$2" \
    || fail "Envoy at $1 did not answer; nothing was stopped"
  say "envoy: healthcheck $2"
}

# Sends SIGTERM and waits for the end of the process. A zombie has ended; it only waits for its parent.
stop_process() {
  pid=$1
  sleep "${FRONT_WAIT_S:-$2}"
  kill -TERM "$pid" || fail "there is no process $pid, or it is not ours"
  say "SIGTERM to $pid; its streams are finishing"
  left=${WAIT_S:-660}
  while kill -0 "$pid" 2> /dev/null; do
    case $(ps -o state= -p "$pid" 2> /dev/null) in Z*) break ;; esac
    [ "$left" -gt 0 ] || fail "process $pid still runs after ${WAIT_S:-660} s"
    left=$((left - 1))
    sleep 1
  done
  say "$pid has ended"
}

is_pid() {
  case $1 in '' | *[!0-9]*) usage ;; esac
  # MainPID of a stopped unit is 0. For kill(1), 0 means the caller's whole process group.
  case $1 in *[!0]*) ;; *) fail "the process does not run (its PID is given as 0); nothing was changed" ;; esac
  kill -0 "$1" 2> /dev/null || fail "there is no process $1, or it is not ours; nothing was changed"
}

[ "$#" -ge 1 ] || usage
case "$1:$#" in
  nginx:4)
    is_pid "$4"
    mark_nginx "$2" "$3" down
    stop_process "$4" 0
    ;;
  nginx-back:3) mark_nginx "$2" "$3" up ;;
  envoy:3)
    is_pid "$3"
    notify_envoy "$2" fail
    stop_process "$3" 10
    ;;
  envoy-back:2) notify_envoy "$2" ok ;;
  *) usage ;;
esac
