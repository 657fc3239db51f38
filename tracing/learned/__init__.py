"""Files of learned policies: value of information, calibration, classifier."""
