# Two columns of made-up voltages; the loudest is passed to later stages.
data="$TIDEWHEEL_WORKFLOW_SHARE_DIR/voltages.txt"
for ((i = 1; i <= PARAMETER_samples; i++)); do
    echo "$((i * 37 % 101)) $((i * 53 % 97))"
done > "$data"
loudest=$(tr ' ' '\n' < "$data" | sort -n | tail -n 1)
echo "observed $PARAMETER_samples samples, the loudest is $loudest"
echo "{\"loudest\": $loudest}" > "$TIDEWHEEL_OUTPUTS"
