"""What a calibration learns from judged pairs: degrees, probabilities, and the number of relevant candidates."""
