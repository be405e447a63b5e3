# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for the block-sparse products of other packages, so that programs written for those run as they are.

Each module has `install()`, which puts it in the other one's place before that is imported. Those of attention register it there.
"""
