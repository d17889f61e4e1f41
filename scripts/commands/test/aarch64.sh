#!/usr/bin/env bash
# Test the aarch64 wheel under emulation: an emulated pip installs it, and its kernels' results are
# compared bit by bit with those of this processor.
#     scripts/test aarch64 [--help] [FOLDER]
# Needs root on Debian, x86-64, with qemu-user-static and debootstrap, but no binfmt_misc. The first
# run makes a Debian root of 300 MB in FOLDER (default: build/aarch64).
set -euo pipefail

cd "$(dirname "$0")/../../.."
folder=$(realpath -m "${1:-build/aarch64}")
arm=$folder/root

if [ ! -e "$folder/ready" ]; then
    echo "== making $arm"
    rm -rf "$arm"
    mkdir -p "$folder"
    debootstrap --arch=arm64 --foreign --variant=minbase --include=python3,libgomp1 bookworm \
        "$arm" http://deb.debian.org/debian > "$folder/log"
    # the packages' own scripts would take an hour more; the files are enough
    for package in "$arm"/var/cache/apt/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar --extract --file - --directory "$arm" \
            --keep-directory-symlink
    done
    rm -f "$arm/proc" # a link to this machine's /proc
    mkdir -p "$arm/proc" "$arm/root"
    echo 'root:x:0:0:root:/root:/bin/sh' > "$arm/etc/passwd"
    cp "$(command -v qemu-aarch64-static)" "$arm/usr/bin/"
    python3 -m pip --quiet --disable-pip-version-check download --no-deps --dest "$arm/root" pip
    touch "$folder/ready"
fi

emulated() {
    env -i HOME=/root PATH=/usr/bin:/bin:/usr/sbin:/sbin LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 \
        chroot "$arm" /usr/bin/qemu-aarch64-static -cpu neoverse-n1 /usr/bin/python3 "$@"
}

echo "== the wheel, by an emulated pip"
rm -rf "$arm/site" "$arm"/root/warpkit-*.whl dist/warpkit-*aarch64.whl
scripts/build wheels aarch64-linux > "$folder/log"
cp dist/warpkit-*aarch64.whl scripts/commands/digest/kernels.py "$arm/root/"
pip=$(basename "$arm"/root/pip-*.whl)
wheel=$(basename "$arm"/root/warpkit-*.whl)
emulated "/root/$pip/pip" --quiet install --no-deps --no-index --no-compile --target /site \
    --root-user-action ignore "/root/$wheel"

echo "== kernels"
scripts/build native --if-older
# float32 gradients are summed by vectors, and AVX-512 sums in another order
WARPKIT_ISA=avx2 scripts/digest kernels > "$folder/here"
emulated /root/kernels.py /site > "$folder/there"
head -n 1 "$folder/here" "$folder/there"
grep -qx "isa neon" "$folder/there"
diff <(tail -n +2 "$folder/here") <(tail -n +2 "$folder/there")
echo "aarch64: passed, $(($(wc -l < "$folder/here") - 1)) kernels have the same bits"
