"""Which errors say that TLS will not come about however long one waits, and what is advised then."""

from __future__ import annotations

import pytest

from esault.tls_refused import tls_refused


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("CERTIFICATE_VERIFY_FAILED: certificate has expired (_ssl.c:1006)", "have a new one put there"),
        ("certificate verify failed: self-signed certificate", "name its authority's file by ca="),
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number", "write s3://"),
        ("record layer failure", "write s3://"),
        ("Connection refused", None),
    ],
)
def test_what_is_refused_for_good_has_a_remedy(said, remedy):
    told = tls_refused(said, "s3://", "ca=")
    assert told is None if remedy is None else remedy in str(told)
