"""Prove the scheduler's promises on this machine: real runs, judged by their journal alone."""
