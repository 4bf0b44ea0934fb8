# Scale one polarisation so that the loudest sample of both is 100.
cut -d ' ' -f 2 "$TIDEWHEEL_WORKFLOW_SHARE_DIR/voltages.txt" |
    awk -v loudest="$PARAMETER_loudest" '{ printf "%d\n", 100 * $1 / loudest }' \
    > "$TIDEWHEEL_WORKFLOW_SHARE_DIR/calibrated_y.txt"
