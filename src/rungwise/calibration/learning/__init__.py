"""What a calibration learns from judged pairs: degrees, probabilities, and how many are relevant."""
