#!/bin/sh
# Creates the whole file system of an image in an empty folder: the executable and the libraries that it needs.
#
#   image-root.sh EXECUTABLE FOLDER
#
# Run as root, it makes user 1000, which runs the image's process, the owner of FOLDER/var/lib/tollgate.
set -eu

[ $# -eq 2 ] || { echo "usage: image-root.sh EXECUTABLE FOLDER" >&2; exit 2; }
executable=$1
root=$2

mkdir -p "$root"
install -m 0755 "$executable" "$root/tollgate"
# Lines are "name => path (address)", and "path (address)" for the loader. The library that the kernel provides has no path.
ldd "$executable" | sed -n 's/^[^/]*\(\/[^ ]*\) (.*/\1/p' | while read -r library; do
  install -D -m 0755 "$library" "$root$library"
done
install -d -m 0700 "$root/var/lib/tollgate"
if [ "$(id -u)" -eq 0 ]; then chown 1000:1000 "$root/var/lib/tollgate"; fi
# Names for the user number, which some programs of the host show.
install -d "$root/etc"
echo 'tollgate:x:1000:1000::/var/lib/tollgate:/nonexistent' > "$root/etc/passwd"
echo 'tollgate:x:1000:' > "$root/etc/group"
