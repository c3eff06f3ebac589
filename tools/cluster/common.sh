# Sourced by the scripts beside it: where things are, and small helpers.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../progress.sh"
home=${XDG_CACHE_HOME:-$HOME/.cache}/streamjoin/cluster
name=streamjoin # of kind's cluster, of the own node

# kind where it can run, else a node of our own.
if command -v kind >/dev/null && docker info >/dev/null 2>&1; then
    type=kind root=$home/kind run=$home/kind
else
    type=own root=/var/lib/streamjoin-cluster run=/run/streamjoin-cluster
fi
socket=$run/containerd.sock
export KUBECONFIG=$home/kubeconfig PATH=$home/bin:$PATH

say() { echo "$(basename "$0"): $*" >&2; }
cannot() { say "$*"; exit 3; }
die() { say "$*"; exit 1; }

# link_programs NAME...: onto the PATH; built first where they are not in the cache.
link_programs() {
    local made program
    made=$("$here/build" "$@")
    mkdir -p "$home/bin"
    for program in $made; do ln -sfn "$program" "$home/bin/"; done
    [ ! -e "$home/bin/kube" ] ||
        for program in etcd kube{-apiserver,-controller-manager,-scheduler,-proxy,let,ctl}; do ln -sfn kube "$home/bin/$program"; done
}

# start NAME COMMAND...: in the background, in a session of its own, with a pid file and a log.
start() {
    local name=$1
    shift
    setsid nohup "$@" >"$root/log/$name.log" 2>&1 </dev/null &
    echo $! >"$run/$name.pid"
}

# stop NAME...: ends what `start` started, after a look that the pid is still that program. There is no state to
# save, so nothing is asked to end in its own time.
stop() {
    local name pid
    for name; do
        pid=$(cat "$run/$name.pid" 2>/dev/null) || continue
        grep -qsaw -- "$name" "/proc/$pid/cmdline" || continue
        kill -9 "$pid" 2>/dev/null || true
        while [ -e "/proc/$pid/exe" ]; do sleep 0.05; done # kill -0 would wait for zombies to be reaped
    done
}

# wait_for SECONDS WHAT COMMAND...: until COMMAND succeeds; shows the end of the logs if it never does.
wait_for() {
    local seconds=$1 what=$2 deadline=$((SECONDS + $1)) tell=$((SECONDS + 20))
    shift 2
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < deadline)) || { tail -n 5 "$root"/log/*.log >&2; die "no $what after $seconds s; logs: $root/log"; }
        if ((SECONDS >= tell)); then
            say "no $what yet after $((seconds - deadline + SECONDS)) of $seconds s; logs: $root/log"
            tell=$((SECONDS + 20))
        fi
        sleep 0.2
    done
}
