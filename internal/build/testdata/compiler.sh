#!/bin/sh
# Stands in for g++ and nvcc: "compiles" a file by copying it and what it
# includes, and "links" by joining objects. Each call is a line in $CALLS.
case " $* " in
  *" --version "*) echo "compiler ${COMPILER_VERSION:-1.0}"; exit 0;;
  *" -Wl,--version "*) echo "linker ${LINKER_VERSION:-1.0}"; exit 0;;
esac
out= dep= source= dirs=. objects= shared=
while [ $# -gt 0 ]; do
  case $1 in
    -o) out=$2; shift;;
    -MF) dep=$2; shift;;
    -ccbin|-Xcompiler|-Xcudafe|-Xptxas) shift;;
    -isystem) dirs="$dirs $2"; shift;;
    -I*) dirs="$dirs ${1#-I}";;
    -shared) shared=yes;;
    -*) ;;
    *.o|*.s) objects="$objects $1";;
    *) source=$1;;
  esac
  shift
done
if [ -n "$shared" ]; then
  echo link >> "$CALLS"
  # An assembly file stands for the file that it brings in.
  for object in $objects; do
    case $object in
      *.s) object=$(sed -n 's/.*\.incbin "\(.*\)"/\1/p' "$object");;
    esac
    cat "$object"
  done > "$out"
  exit
fi
echo "$source" >> "$CALLS"
printf 'half an object' > "$out"
if grep -q WAIT "$source"; then touch "$CALLS.waiting"; sleep 600 & wait; fi
if [ -n "$COMPILER_DELAY" ]; then sleep "$COMPILER_DELAY"; fi
if grep -q crashes "$source"; then kill -SEGV $$; fi
if grep -q killed "$source"; then echo Killed; exit 137; fi
if grep -q diskfull "$source"; then echo "$source: catastrophic error: No space left on device"; exit 4; fi
if grep -q BROKEN "$source"; then echo "$source:1: it is broken" >&2; echo "and so on"; exit 2; fi
if grep -q UNSTEADY "$source"; then echo RESTS > "$source"; fi
if grep -q RESTLESS "$source"; then echo RESTLESS >> "$source"; fi
files=$source
todo=$source
while [ -n "$todo" ]; do
  next=
  for file in $todo; do
    for name in $(sed -n 's/^#include "\(.*\)"$/\1/p' "$file"); do
      for dir in $dirs; do
        if [ -f "$dir/$name" ]; then files="$files $dir/$name"; next="$next $dir/$name"; break; fi
      done
    done
  done
  todo=$next
done
echo "$out: $files" > "$dep"
cat $files > "$out"
