# SPDX-License-Identifier: MIT
"""Modules of tools/weft-vm, the virtual machine runner."""
