# Sourced by scripts whose first argument names a command.

# print_help [FILE]: the comment at the head of a script, by default of this one
print_help() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "${1:-$0}"; }

# run_command EXTRAS [NAME [ARGUMENTS]]: scripts/commands/SCRIPT/NAME.sh, or the module NAME.py in an
# environment with these extras of pyproject.toml
run_command() {
    local script name extras=$1
    script=$(basename "$0") name=${2:-}
    local file; file=$(dirname "$0")/commands/$script/$name
    case $name in
        --help) print_help; exit ;;
        "") print_help >&2; exit 2 ;;
    esac
    shift 2
    if [ -f "$file.sh" ]; then
        [ "${1:-}" != --help ] || { print_help "$file.sh"; exit; }
        exec "$file.sh" "$@"
    fi
    if [ ! -f "$file.py" ]; then
        echo "$script: the commands are $(names_of "$script"), got '$name'" >&2
        exit 2
    fi
    source "$(dirname "$0")/environment" "$extras"
    cd "$root"
    exec "$python" -m "scripts.commands.$script.$name" "$@"
}

# the names of a script's commands: "one, other"
names_of() {
    local files; files=$(cd "$(dirname "$0")/commands/$1" && echo [a-z]*.*)
    echo "$files" | sed 's/\.[a-z]*//g; s/ /, /g'
}

# make_layer NAME: an environment on top of .venv, .venv-NAME, whose folder is $layer, with the versions
# in requirements/NAME.txt and without their dependencies: some would bring another torch or OpenCV
make_layer() {
    local packages=$root/requirements/$1.txt
    layer=$root/.venv-$1
    cmp -s "$packages" "$layer/installed" && return
    step "installing $(grep -c == "$packages") packages into .venv-$1"
    "$python" -m venv --clear "$layer"
    local folder='import sysconfig; print(sysconfig.get_path("purelib"))'
    "$python" -c "$folder" > "$("$layer/bin/python" -c "$folder")/venv.pth"
    "$layer/bin/python" -m pip install --disable-pip-version-check --quiet --no-deps \
        --requirement "$packages"
    cp "$packages" "$layer/installed"
}
