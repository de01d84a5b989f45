"""Tests of suites: many models in many configurations."""
