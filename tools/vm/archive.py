# SPDX-License-Identifier: MIT
"""The Debian archive: mirrors read from the machine's own apt sources, and a private apt.

The private apt keeps its lists and downloads in the cache, so an ordinary user can
fetch packages of any suite and nothing of the host's apt state changes.
WEFT_MIRROR (the URL of a Debian archive) overrides what the machine's sources say.
"""

import dataclasses
import glob
import os
import re
import subprocess
import time

from . import util

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
LISTS_FRESH_SECONDS = 24 * 3600


@dataclasses.dataclass(frozen=True)
class Source:
    uri: str
    suite: str


def parse_one_line(text):
    found = []
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)", line)
        if match:
            found.append(Source(match[1].rstrip("/"), match[2]))
    return found


def parse_deb822(text):
    found = []
    for stanza in re.split(r"\n\s*\n", text):
        fields = {}
        key = None
        for line in stanza.splitlines():
            if line.startswith("#"):
                continue
            if line[:1].isspace() and key:
                fields[key] += " " + line.strip()
            elif ":" in line:
                key, value = line.split(":", 1)
                key = key.strip().lower()
                fields[key] = value.strip()
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes") == "no":
            continue
        found += [Source(uri.rstrip("/"), suite) for uri in fields.get("uris", "").split()
                  for suite in fields.get("suites", "").split()]
    return found


def machine_sources(etc="/etc/apt"):
    found = []
    for path in [f"{etc}/sources.list"] + sorted(glob.glob(f"{etc}/sources.list.d/*")):
        if not os.path.isfile(path) or not path.endswith((".list", ".sources")):
            continue
        with open(path, encoding="utf-8") as handle:
            text = handle.read()
        found += parse_deb822(text) if path.endswith(".sources") else parse_one_line(text)
    return found


def mirror_of(security):
    """URL of the main archive, or of the security archive."""
    forced = os.environ.get("WEFT_MIRROR", "").rstrip("/")
    if forced:
        return forced + "-security" if security else forced
    for source in machine_sources():
        is_security = source.suite.endswith("-security")
        is_main = re.fullmatch(r"(bookworm|trixie|stable|sid|testing)(-updates|-backports)?", source.suite)
        if is_security if security else is_main:
            return source.uri
    kind = "security archive" if security else "Debian archive"
    raise util.VmError(f"no {kind} in /etc/apt/sources.list*: set WEFT_MIRROR to an archive's URL")


def entries(suites):
    """Lines of a sources.list for these suites."""
    return [f"deb [signed-by={KEYRING}] {mirror_of(s.endswith('-security'))} {s} main" for s in suites]


class Apt:
    """apt-get and apt-cache with their state in the cache, one per set of suites."""

    def __init__(self, suites):
        self.root = util.cache_dir() / "apt" / "+".join(suites)
        self.suites = suites
        (self.root / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        (self.root / "archives" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
        self.sources = self.root / "sources.list"
        self.options = [
            "-q", "-o", f"Dir::State::lists={self.root}/lists", "-o", f"Dir::Cache={self.root}/archives",
            "-o", f"Dir::Etc::SourceList={self.sources}", "-o", "Dir::Etc::SourceParts=-",
            "-o", "Dir::State::status=/dev/null", "-o", "Debug::NoLocking=1",
            "-o", "Acquire::Languages=none", "-o", "Acquire::Retries=3",
        ]
        if os.geteuid() == 0:
            self.options += ["-o", "APT::Sandbox::User=root"]

    def update(self, force=False):
        text = "\n".join(entries(self.suites)) + "\n"
        stamp = self.root / "updated"
        if not force and stamp.exists() and self.sources.exists() and self.sources.read_text() == text \
                and time.time() - stamp.stat().st_mtime < LISTS_FRESH_SECONDS:
            return
        self.sources.write_text(text, encoding="utf-8")
        util.run_logged(["apt-get", *self.options, "update", "-o", "APT::Update::Error-Mode=any"],
                        self.root / "apt.log")
        stamp.touch()

    def newest(self, pattern):
        """The package whose name matches the pattern and has the highest version in its name."""
        self.update()
        names = subprocess.run(["apt-cache", *self.options, "pkgnames"], capture_output=True,
                               text=True, check=True).stdout.split()
        hits = [n for n in names if re.fullmatch(pattern, n)]
        if not hits:
            raise util.VmError(f"no package matches {pattern} in {' '.join(self.suites)}")
        return max(hits, key=version_key)

    def download(self, package):
        """The path of the downloaded .deb."""
        self.update()
        place = self.root / "debs" / package
        place.mkdir(parents=True, exist_ok=True)
        have = sorted(place.glob("*.deb"))
        if not have:
            util.say(f"fetching {package}")
            try:
                util.run_logged(["apt-get", *self.options, "download", package], self.root / "apt.log",
                                cwd=place)
            except util.VmError:
                self.update(force=True)
                util.run_logged(["apt-get", *self.options, "download", package], self.root / "apt.log",
                                cwd=place)
            have = sorted(place.glob("*.deb"))
        return have[-1]

    def unpack(self, package, where):
        """Unpack a package below a directory and drop the archive file."""
        deb = self.download(package)
        util.output_of(["dpkg-deb", "-x", deb, where])
        deb.unlink()

    def depends(self, package):
        text = subprocess.run(["apt-cache", *self.options, "depends", "--no-recommends", "--no-suggests",
                               package], capture_output=True, text=True, check=True).stdout
        return [line.split()[-1] for line in text.splitlines() if line.strip().startswith("Depends:")]


def version_key(name):
    return [int(x) for x in re.findall(r"\d+", name)]
