"""What errors of object stores are told as, and which pass by themselves."""

from __future__ import annotations

import errno
import re
import ssl

import pytest

from esault.object_store.refusals import code_of, explained, first_line, passes


class Answered(Exception):
    """As botocore raises it."""

    def __init__(self, code, text="An error occurred"):
        super().__init__(text)
        self.response = {"Error": {"Code": code}}


class NoCredentialsError(Exception):
    pass


class EndpointConnectionError(Exception):
    pass


class Untranslated(Exception):
    """With another error in it, as Amazon's client has it."""

    def __init__(self, error):
        super().__init__("could not connect")
        self.kwargs = {"error": error}


def caused(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("protocol", "error", "said"),
    [
        ("s3", ImportError("Install s3fs"), r"needs s3fs: pip install 'esault\[s3\]'"),
        ("gs", ImportError("no gcsfs"), "needs gcsfs: pip install gcsfs"),
        ("abfss", ImportError("adlfs"), "needs adlfs"),
        ("ftp", ImportError("No module named 'fsspec'"), r"needs fsspec: pip install 'esault\[s3\]'"),
        ("ftp", ImportError("no paramiko"), "^u: no paramiko$"),
        ("x3", ValueError("Protocol not known: x3"), "there is no object store x3://"),
        ("s3", Answered("412"), "was replaced while it was read"),
        ("s3", NoCredentialsError("none"), "set AWS_ACCESS_KEY_ID"),
        ("gs", NoCredentialsError("none"), r"none; sign in, or give storage_options=\{...\}$"),
        ("s3", Answered("SignatureDoesNotMatch"), "the store does not know these credentials"),
        ("s3", Answered("ExpiredToken"), "get a new AWS_SESSION_TOKEN"),
        ("s3", Answered("PermanentRedirect"), "another region"),
        ("s3", PermissionError("Forbidden"), "s3:ListBucket"),
        ("az", PermissionError("Forbidden"), "allow it, or take other credentials"),
        ("s3", FileNotFoundError("The specified bucket does not exist"), "make the bucket"),
        ("s3", caused(FileNotFoundError("b"), Answered("NoSuchBucket")), "make the bucket"),
        ("az", FileNotFoundError("The specified container does not exist."), "make the bucket"),
        ("s3", FileNotFoundError("b/in"), r"put it back, or start anew"),
        # many buckets are called so, and that one of its objects is gone says nothing of it
        ("s3", FileNotFoundError("my-bucket/in/a.csv"), r"put it back, or start anew"),
        ("gs", ssl.SSLCertVerificationError("self-signed certificate"), "SSL_CERT_FILE"),
        ("s3", Untranslated(FileNotFoundError("ca.pem")), "correct the file of authorities"),
        ("s3", EndpointConnectionError("no route"), "mend the network"),
        ("s3", OSError(errno.EBUSY, "slow down"), "mend the network"),
        ("s3", TypeError("unexpected keyword"), "correct storage_options, which has kye$"),
        ("s3", RuntimeError("Odd.\nmore"), "^u: Odd$"),
    ],
)
def test_errors_are_told_with_the_remedy(protocol, error, said):
    assert re.search(said, explained("u", protocol, {"kye": 1}, error))


@pytest.mark.parametrize(
    ("error", "later"),
    [
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (OSError(errno.ECONNREFUSED, "x"), True),
        (OSError(errno.EACCES, "x"), False),
        (Answered("ConditionalRequestConflict"), True),
        (Answered("NoSuchKey"), False),
        (EndpointConnectionError("x"), True),
        # of a certificate no waiting makes another, though it is an error of the connection
        (caused(ssl.SSLCertVerificationError("self-signed certificate"), None), False),
        (Untranslated(FileNotFoundError("ca.pem")), False),
        (Untranslated(ConnectionResetError()), False),
        (ValueError("x"), False),
    ],
)
def test_what_passes_by_itself(error, later):
    assert passes(error) is later


def test_the_code_of_a_store_is_that_of_the_error_or_of_its_cause():
    assert code_of(Answered("NoSuchKey")) == "NoSuchKey"
    assert code_of(caused(OSError(), Answered("412"))) == "PreconditionFailed"
    assert code_of(OSError()) == ""


def test_an_error_without_text_is_told_by_its_kind():
    assert first_line(KeyError()) == "KeyError"
    assert first_line(ValueError("one.\ntwo")) == "one"
