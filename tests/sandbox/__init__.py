"""Tests of the sandbox: embedded servers, supervisor, provider, offline model."""
