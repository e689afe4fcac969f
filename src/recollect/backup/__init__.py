"""Backups: a whole store copied while others write, and put back after every byte is checked."""

from recollect.backup.restoring import RestoreReport, restore
from recollect.backup.taking import BackupReport, back_up

__all__ = ["BackupReport", "RestoreReport", "back_up", "restore"]
