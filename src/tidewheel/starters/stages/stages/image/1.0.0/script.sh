# Both polarisations together: one number for each sample.
cd "$TIDEWHEEL_WORKFLOW_SHARE_DIR" || exit 1
paste calibrated_x.txt calibrated_y.txt | awk '{ print $1 + $2 }' > image.txt
