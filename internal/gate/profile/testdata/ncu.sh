#!/bin/sh
# Stands in for ncu: keeps its arguments, and says what the files beside it tell.
here=$(dirname "$0")
printf '%s ' "$@" > "$here/args"
while [ $# -gt 0 ]; do
	[ "$1" = --log-file ] && log=$2
	shift
done
cat "$here/csv" > "$log"
cat "$here/stdout"
[ ! -e "$here/code" ] && exit 0
echo "sparsek: one: wrong result" >&2
exit "$(cat "$here/code")"
