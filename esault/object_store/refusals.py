"""Errors of object stores and their clients: which pass by themselves, and what the others mean to the user."""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from typing import Any

from esault.tls_refused import tls_refused

__all__ = ["code_of", "explained", "first_line", "passes", "replaced"]

#: protocol -> the library that fsspec needs for it, and how it is installed
_LIBRARIES = {
    "s3": ("s3fs", "pip install 'esault[s3]'"),
    "s3a": ("s3fs", "pip install 'esault[s3]'"),
    "gs": ("gcsfs", "pip install gcsfs"),
    "gcs": ("gcsfs", "pip install gcsfs"),
    "az": ("adlfs", "pip install adlfs"),
    "abfs": ("adlfs", "pip install adlfs"),
    "abfss": ("adlfs", "pip install adlfs"),
}
#: of servers that may answer later: 500, 503 and 409, in the words of s3fs
_LATER = frozenset(
    {errno.EBUSY, getattr(errno, "EREMOTEIO", errno.EIO), errno.ECONNREFUSED, errno.ECONNRESET, errno.EPIPE}
)
#: errors of client libraries that a server which is away brings
_AWAY = frozenset(
    {"HTTPClientError", "ConnectionError", "EndpointConnectionError", "ClientConnectionError", "ClientPayloadError"}
)
_WRONG_KEYS = frozenset({"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidClientTokenId", "AuthFailure"})
_OTHER_REGION = frozenset({"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"})


def replaced(url: str) -> str:
    """Return what is said of an object that is not the one that was found."""
    return (
        f"{url}: was replaced while it was read, or before; rows of two versions are never mixed: put the old content "
        "back, or start anew (--restart), and write new data under new names"
    )


def explained(url: str, protocol: str, options: Mapping[str, Any], error: Exception) -> str:
    """Return an error in plain words, with the remedy."""
    text, code = first_line(error), code_of(error)
    if isinstance(error, ImportError):
        library, install = _LIBRARIES.get(protocol, ("", ""))
        need = library or "fsspec"
        install = install if library else "pip install 'esault[s3]'"
        return f"{url}: needs {need}: {install}" if library or "fsspec" in text else f"{url}: {text}"
    if isinstance(error, ValueError) and "Protocol not known" in text:
        return f"{url}: there is no object store {protocol}://; write s3://, gs://, az://, or the path of a file"
    if code == "PreconditionFailed":
        return replaced(url)
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds & {"NoCredentialsError", "PartialCredentialsError", "DefaultCredentialsError"}:
        hint = (
            "; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give storage_options={...}; a public bucket is read with "
            'storage_options={"anon": True}'
            if protocol in ("s3", "s3a")
            else "; sign in, or give storage_options={...}"
        )
    elif code in _WRONG_KEYS:
        hint = "; the store does not know these credentials: correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    elif code in ("ExpiredToken", "TokenRefreshRequired", "InvalidToken"):
        hint = "; get a new AWS_SESSION_TOKEN"
    elif code in _OTHER_REGION:
        hint = "; the bucket is in another region: set AWS_DEFAULT_REGION, or AWS_ENDPOINT_URL"
    elif isinstance(error, PermissionError):
        hint = "; allow these credentials s3:ListBucket, s3:GetObject and, for a sink, s3:PutObject and s3:DeleteObject, or take others"
        hint = hint if protocol in ("s3", "s3a") else "; allow it, or take other credentials"
    elif isinstance(error, FileNotFoundError):
        # not any "bucket" in the text: it says the path, and many buckets are called so
        bucket = code == "NoSuchBucket" or re.search("specified (bucket|container) does not exist", text, re.I)
        hint = "; make the bucket, or correct its name" if bucket else "; put it back, or start anew (--restart)"
    elif (remedy := _tls(error, protocol)) is not None:
        hint = f"; {remedy}"
    elif _missing_file(error):
        hint = "; correct the file of authorities: AWS_CA_BUNDLE, REQUESTS_CA_BUNDLE, or ca_bundle in ~/.aws/config"
    elif passes(error):
        hint = "; the object store does not answer: mend the network, or AWS_ENDPOINT_URL, then go on with --resume"
    elif isinstance(error, TypeError):
        hint = f"; correct storage_options, which has {', '.join(sorted(map(str, options))) or 'nothing'}"
    else:
        hint = ""
    return f"{url}: {text}{hint}"


def passes(error: BaseException) -> bool:
    """Return whether the same may go well later."""
    if _tls(error, "") is not None or _missing_file(error):
        return False
    # before Python 3.11 that of asyncio, which takes a while to load, is another class
    if isinstance(error, (ConnectionError, TimeoutError)) or type(error).__name__ == "TimeoutError":
        return True
    if isinstance(error, OSError) and error.errno in _LATER:
        return True
    # of two who put an object at once, S3 has one try again
    return code_of(error) == "ConditionalRequestConflict" or any(kind.__name__ in _AWAY for kind in type(error).__mro__)


def _tls(error: BaseException, protocol: str) -> str | None:
    """Return the remedy of a TLS that will not come about; None of any other error."""
    if not any("SSL" in kind.__name__ or "Certificate" in kind.__name__ for kind in type(error).__mro__):
        return None
    amazon = protocol in ("s3", "s3a")
    plain = "http:// in AWS_ENDPOINT_URL or endpoint_url" if amazon else "http:// in its address"
    authority = "AWS_CA_BUNDLE in the environment" if amazon else "SSL_CERT_FILE in the environment"
    return tls_refused(str(error), plain, authority)


def _missing_file(error: BaseException) -> bool:
    """Return whether Amazon's client has no answer since a file that it was told of is not there."""
    return isinstance((getattr(error, "kwargs", None) or {}).get("error"), FileNotFoundError)


def code_of(error: BaseException) -> str:
    """Return S3's word for it; "" where there is none."""
    for each in (error, error.__cause__):
        answer = getattr(each, "response", None)
        if isinstance(answer, Mapping):
            code = str(answer.get("Error", {}).get("Code", ""))
            return "PreconditionFailed" if code == "412" else code
    return ""


def first_line(error: BaseException) -> str:
    """Return the first line of its text; its kind where it has none."""
    return (str(error) or type(error).__name__).partition("\n")[0].removesuffix(".")
