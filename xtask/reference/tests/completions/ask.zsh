# Lines on standard input, what each may go on with on standard output.
zmodload zsh/zpty zsh/zselect
: > "$ANSWERS"
zpty -b shell zsh -i
# Types nothing before the answer to the line before is there: the terminal would take it for a part of that.
wait_for() {
    local text
    while (( $(wc -l < "$ANSWERS") < $1 )); do
        zpty -r -t shell text
        zselect -t 1
    done
}
wait_for 1
integer asked=1
while read -r line; do
    zpty -w -n shell "$line"$'\t'
    wait_for $(( ++asked ))
done
zpty -d shell
tail -n +2 "$ANSWERS"
