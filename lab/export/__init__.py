"""Exports of experiments for other tools."""
