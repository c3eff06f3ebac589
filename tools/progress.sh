# Sourced by scripts whose work takes minutes, so that they say what they do.

# with_progress WHAT LOG COMMAND...: runs a command whose stderr goes into LOG, and says every 20 s for how long it has run
# and what it said last. If it fails, the end of LOG is shown, and where it lies. Its exit code is returned.
with_progress() {
    local what=$1 log=$2 began=$SECONDS code=0 teller
    shift 2
    mkdir -p "$(dirname "$log")"
    : >"$log"
    echo "$(basename "$0"): $what; log: $log" >&2
    exec 8> >(tell_progress "$what" "$log" >&2) # which ends with this process, however that ends
    teller=$!
    "$@" 2>"$log" 8>&- || code=$?
    exec 8>&-
    wait "$teller" || true
    if [ $code = 0 ]; then
        echo "$(basename "$0"): $what: done in $(spent)" >&2
    else
        tail -n 20 "$log" >&2
        echo "$(basename "$0"): $what: failed after $(spent); log: $log" >&2
    fi
    return $code
}

# tell_progress WHAT LOG: a line now and then, until its input ends.
tell_progress() {
    local what=$1 log=$2 began=$SECONDS code last
    while true; do
        code=0
        read -rt "${PROGRESS_S:-20}" _ || code=$?
        ((code > 128)) || return 0 # not the time is over, but the input
        last=$(last_line "$log")
        echo "$(basename "$0"): $what: $(spent)${last:+, line $(wc -l <"$log"): $last}"
    done
}

spent() { # since `began`
    local seconds=$((SECONDS - began))
    ((seconds < 60)) || printf '%d min ' $((seconds / 60))
    echo "$((seconds % 60)) s"
}

last_line() { # LOG: without what only a terminal understands, and not too much of it
    tail -c 4096 "$1" | tr '\r' '\n' | sed -E 's/\x1b\[[0-9;]*[A-Za-z]//g; /^\s*$/d' | tail -n 1 | LC_ALL=C tr -cd '[:print:]' |
        cut -c1-100
}
