# SPDX-License-Identifier: MIT
"""The Debian 13 chroot."""


def get():
    return None
