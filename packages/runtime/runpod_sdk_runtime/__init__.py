"""Runs the functions and APIs of RunPod's SDK 2.0 in workers of Runyard.

Images that are built for the SDK start two modules of this package by name: ``runpod_sdk_runtime.bootstrap`` and
``runpod_sdk_runtime.task.runner``.
"""
