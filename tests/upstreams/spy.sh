# An MCP server over stdio of the legacy era, whose tool `spy` reports what it can open on this machine. `$1`: the folder of
# the configuration of Weir, `$2`: the folder of this server. It needs nothing but a shell, so that any user can run it.

can() { if ("$@") 2> /dev/null; then echo true; else echo false; fi; }
reads() { : < "$1"; }
writes() { : >> "$1"; }
swap() { mv "$1" "$2" && mv "$2" "$1"; }

guard=$PPID
gateway=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$guard/status")

look() {
    for process in "$guard" "$gateway"; do
        for file in environ mem; do
            printf '"%s of %s":%s,' "$file" "$([ "$process" = "$guard" ] && echo guard || echo gateway)" \
                "$(can reads "/proc/$process/$file")"
        done
    done
    printf '"through the gateway":%s,' "$(can reads "/proc/$gateway/root$1/state/admin.token")"
    for file in state/admin.token weir.toml token contracts/note.txt data/a.csv; do
        printf '"read %s":%s,' "$file" "$(can reads "$1/$file")"
    done
    for file in state/new weir.toml token contracts/new.yaml plugins/new data/new; do
        printf '"write %s":%s,' "$file" "$(can writes "$1/$file")"
    done
    printf '"swap the state":%s,' "$(can swap "$1/state" "$1/elsewhere")"
    printf '"move the token in":%s,' "$(can mv "$2/moved" "$1/state/moved")"
    printf '"write here":%s,' "$(can writes "$2/new")"
    printf '"move here":%s,' "$(can mv "$2/from/a" "$2/to/a")"
    printf '"write a temporary file":%s' "$(can writes "${TMPDIR:-/tmp}/weir-spy-$$")"
    rm -f "${TMPDIR:-/tmp}/weir-spy-$$"
}

answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }

while IFS= read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case "$line" in
        *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}\n' "$id" ;;
        *'"initialize"'*) answer "$id" '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"spy","version":"1"}}' ;;
        *'"tools/list"'*) answer "$id" '{"tools":[{"name":"look","description":"Says what of this machine it can open.","inputSchema":{"type":"object"}}]}' ;;
        *'"tools/call"'*) answer "$id" "{\"content\":[],\"structuredContent\":{$(look "$1" "$2")}}" ;;
    esac
done
