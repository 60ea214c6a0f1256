"""Errors to return to clients: a code for programs, one sentence for people, a status."""

from __future__ import annotations

from typing import Any, Self

UNEXPECTED = "Something went wrong on our side; it was logged. Please try again."
"""The message of an unexpected exception, whose own text may contain hosts, statements or values."""


class ServiceError(Exception):
    code = "error"
    status = 400

    def __init__(self, message: str, *, details: Any = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        self.code = code or self.code

    @classmethod
    def in_field(cls, field: str, problem: str, message: str = "", **extra: Any) -> Self:
        """Return an error that names a field of the request. Without a `message`, its sentence is "field: problem."."""
        details = [{"field": field, "message": problem}]
        return cls(message or f"{field}: {problem}.", details=details, **extra)


class Malformed(ServiceError):
    """The request cannot be parsed."""

    code = "malformed"


class InvalidInput(ServiceError):
    code = "invalid"
    status = 422


class Unauthorized(ServiceError):
    code = "unauthorized"
    status = 401


class Forbidden(ServiceError):
    code = "forbidden"
    status = 403


class NotFound(ServiceError):
    """The row does not exist, or belongs to another user."""

    code = "not_found"
    status = 404

    def __init__(
        self, message: str = "This does not exist, or it belongs to another user.", **extra: Any
    ) -> None:
        super().__init__(message, **extra)


class Conflict(ServiceError):
    code = "conflict"
    status = 409


class DeletedConcurrently(Conflict):
    """A row to write, or one that it references, was deleted after it was read."""

    def __init__(self) -> None:
        super().__init__("The item that this belongs to was just deleted. Please reload.")


class TooLarge(ServiceError):
    code = "too_large"
    status = 413


class RateLimited(ServiceError):
    code = "rate_limited"
    status = 429

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message, details={"retry_after": retry_after_s})
        self.retry_after_s = retry_after_s


class Unavailable(ServiceError):
    code = "unavailable"
    status = 503

    def __init__(self, message: str = "The database is not available right now. Please try again.") -> None:
        super().__init__(message)


class Failed(ServiceError):
    """An unexpected error, which is logged where it is caught."""

    code = "internal"
    status = 500

    def __init__(self) -> None:
        super().__init__(UNEXPECTED)


class DiskFull(ServiceError):
    code = "storage_full"
    status = 507

    def __init__(self) -> None:
        super().__init__(
            "The disk of this service is full, so this was not stored. Try again when an administrator has made room."
        )


class ReadForgotten(ServiceError):
    """Something that was read may have been forgotten since. The caller must read again."""

    code = "read_forgotten"
    status = 409


class LeaseLost(ServiceError):
    """A write had a stale fencing number: the run or compaction has ended, or another process owns it."""

    code = "lease_lost"
    status = 409
