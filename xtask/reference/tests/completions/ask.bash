# Lines on standard input, what each may go on with on standard output. $1: the folder of the scripts.
compopt() { :; } # works only where readline calls
for script in "$1"/*; do source "$script"; done
while read -r line; do
    words=($line)
    registered=($(complete -p "${words[0]}"))
    for i in "${!registered[@]}"; do
        if [[ ${registered[i]} == -F ]]; then call=${registered[i + 1]}; fi
    done
    COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1)) COMP_LINE=$line COMP_POINT=${#line} COMPREPLY=()
    "$call" "${words[0]}" "${words[-1]}" "${words[-2]}"
    echo "${COMPREPLY[*]}"
done
