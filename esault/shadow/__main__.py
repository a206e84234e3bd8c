"""The process of a shadow: python -m esault.shadow FOLDER, as `esault run --shadow` starts it."""

from __future__ import annotations

import sys

from esault.errors import EsaultError, TopologyFailed
from esault.messages.delivery import Delivery
from esault.messages.settings import Settings
from esault.runtime.process.log_output import configure
from esault.runtime.session.request import Quiet, Request
from esault.runtime.session.run import execute, with_checkpoints
from esault.shadow.folder import ShadowFolder
from esault.shadow.versions import ShadowVersion
from esault.topology.locate import locate
from esault.topology.parameters import convert

__all__ = ["main"]


class _View(Quiet):
    """A view that prints to the log; the first snapshot says that the shadow waits for rows."""

    def __init__(self, folder: ShadowFolder) -> None:
        self._begun = folder.begun

    def update(self, snapshot: object) -> None:
        """The run as it is."""
        if not self._begun.exists():
            self._begun.touch()


def main() -> int:
    """Run the shadow to its end; the exit code is that of `esault run`."""
    folder = ShadowFolder(sys.argv[1])
    about = folder.about
    try:
        configure(about["log_level"], "text")
        place = locate(about["shadow"])
        known = {each.name for each in place.parameters()}
        said = [each for each in about["set"] if each.partition("=")[0] in known] + about["shadow_set"]
        going_on = folder.savepoint is not None
        settings = Settings(delivery=Delivery.NONE if about["acks"] == "off" else Delivery.AT_LEAST_ONCE)
        report = execute(
            Request(
                ShadowVersion(**vars(place), shadow_folder=str(folder.path)),
                convert(place.parameters(), said),
                settings=with_checkpoints(settings, about["checkpoint"]),
                slots=about["slots"],
                report=folder.path / "shadow" / "report.json",
                state=None if about["checkpoint"] is None else folder.state,
                from_savepoint=str(folder.savepoint) if going_on else None,
                renames=about["renames"] if going_on else {},
                allow_dropped_state=about["allow_dropped_state"] and going_on,
                view=_View(folder),
            )
        )
    except TopologyFailed as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    except EsaultError as error:
        print(f"error: {str(error).replace('say --rename', 'say --shadow-rename')}", file=sys.stderr)
        return 2
    print(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
