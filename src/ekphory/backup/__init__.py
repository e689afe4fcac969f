"""Backups: a whole store copied while others write, and put back after every byte is checked."""

from ekphory.backup.restoring import RestoreReport, restore
from ekphory.backup.taking import BackupReport, back_up

__all__ = ["BackupReport", "RestoreReport", "back_up", "restore"]
