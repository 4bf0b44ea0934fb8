-- Workers: tells the job folders of several stores apart.
SELECT id FROM tidewheel.store_identity;
