"""Lists the keys of compose files, and what kind of value each of them takes.

Theory of operation. Engines refuse a whole file for one key or value that they do not know, so
whether a stage can run is known only if their rules are known here. The tables say what
docker-compose 1.29 accepts; ``newer`` are keys that only docker compose 2 knows. Both read the
format 3 of compose files and the later specification, so the ``version`` of a file changes
nothing. A test asks the real docker-compose about many small files, and compares.

What a value is follows from how YAML reads it (1.1, as engines do): `yes` is a flag, `012` a
number. Where a text may stand for a number or flag, engines turn it into one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from tidewheel.lazy_dataclasses import dataclass

# What YAML makes of a scalar.
TEXT_TAG, WHOLE_TAG, NUMBER_TAG, FLAG_TAG, NULL_TAG = "str", "int", "float", "bool", "null"


@dataclass(frozen=True, slots=True)
class Plain:
    """Accepts single values: those of some YAML types, and strings that read like one."""

    words: str  # what is accepted
    tags: frozenset[str]
    text: re.Pattern[str] | None = None  # which strings are accepted; None: all, if strings are
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True, slots=True)
class ListOf:
    """Accepts lists of one kind of values, usually each only once."""

    words: str
    each: Kind
    is_unique: bool = True


@dataclass(frozen=True, slots=True)
class MapOf:
    """Accepts mappings whose keys people choose."""

    words: str
    each: Kind
    names: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """Accepts mappings with some keys; ``newer`` are those of docker compose 2 alone."""

    words: str  # of what these are the keys
    known: Mapping[str, Kind]
    newer: frozenset[str] = frozenset()
    required: tuple[str, ...] = ()
    is_extensible: bool = True  # by keys that begin with x-
    # Those that docker-compose accepts, and no worker executes: who knows what they reach?
    unrun: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class OneOf:
    """Accepts what one of several kinds accepts; they differ in being a list, a mapping or
    neither."""

    words: str
    kinds: tuple[Kind, ...] = field(default_factory=tuple)


Kind: TypeAlias = "Plain | ListOf | MapOf | KnownKeys | OneOf"

WHOLE_TEXT = re.compile(r"\s*[-+]?(0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|[1-9][0-9]*|0)\s*", re.ASCII)
NUMBER_TEXT = re.compile(r"\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*", re.ASCII)
FLAG_TEXT = re.compile(r"(?i:y|yes|true|on|n|no|false|off)")
DURATION_TEXT = re.compile(
    r"(?=.*\d)(\d+(\.\d+)?h)?(\d+(\.\d+)?m)?(\d+(\.\d+)?s)?(\d+(\.\d+)?ms)?(\d+(\.\d+)?us)?"
    r"(\d+(\.\d+)?ns)?",
    re.ASCII,
)
SIZE_TEXT = re.compile(r"(?i:\d+(\.\d+)?\s*([kmgt]i?b?|b)?)", re.ASCII)
PORT_TEXT = re.compile(
    r"((\[?[0-9a-fA-F.:]+\]?:)?(\d{0,9})(?:-(\d{1,9}))?:)?(\d{1,9})(?:-(\d{1,9}))?"
    r"(/(udp|tcp|sctp))?",
    re.ASCII,
)
EXPOSED_TEXT = re.compile(r"\d+(-\d+)?(/[a-zA-Z]+)?", re.ASCII)
SUBNET_TEXT = re.compile(
    r"(\d{1,3}\.){3}\d{1,3}/(\d|[12]\d|3[0-2])|[0-9a-fA-F:.]+/(\d|[1-9]\d|1[01]\d|12[0-8])",
    re.ASCII,
)
NAME_TEXT = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
SECURITY_TEXT = re.compile(r"no-new-privileges|[^:=]*[:=].*", re.DOTALL)
SOURCE_TEXT = re.compile(r"((service|container):)?[^:]+(:[^:]+)?", re.DOTALL)
RESTART_TEXT = re.compile(r"[^:]*(:\d+)?", re.ASCII)
SIGNAL_TEXT = re.compile(
    r"(?i:(SIG)?(ABRT|ALRM|BUS|CHLD|CLD|CONT|FPE|HUP|ILL|INT|IO|IOT|KILL|PIPE|POLL|PROF|PWR|QUIT"
    r"|SEGV|STKFLT|STOP|SYS|TERM|TRAP|TSTP|TTIN|TTOU|UNUSED|URG|USR1|USR2|VTALRM|WINCH|XCPU|XFSZ"
    r"|RTMIN(\+([1-9]|1[0-5]))?|RTMAX(-([1-9]|1[0-4]))?))|[1-9]|[1-5][0-9]|6[0-4]",
    re.ASCII,
)
FOLDER_TEXT = re.compile(r"|(/|\$\{).*", re.DOTALL)
ULIMIT_NAME = re.compile(r"[a-z]+", re.ASCII)
# An image by its name: a host, folders in small letters, a version, a digest.
IMAGE_TEXT = re.compile(
    r"((localhost|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+|[A-Za-z0-9-]+(?=:\d))(:\d+)?/)?"
    r"[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*)*"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[a-z0-9]+:[0-9a-f]{32,})?",
    re.ASCII,
)
IMAGE_ID = re.compile(r"(sha256:)?[0-9a-f]{64}", re.ASCII)


def _plain(words: str, *tags: str, text: re.Pattern[str] | None = None) -> Plain:
    return Plain(words, frozenset(tags), text)


TEXT = _plain("a string", TEXT_TAG)
FLAG = _plain("true or false", FLAG_TAG)
FLAG_SAID = _plain("true or false", FLAG_TAG, TEXT_TAG, text=FLAG_TEXT)
WHOLE = _plain("a whole number", WHOLE_TAG)
WHOLE_SAID = _plain("a whole number", WHOLE_TAG, TEXT_TAG, text=WHOLE_TEXT)
NUMBER = _plain("a number", WHOLE_TAG, NUMBER_TAG)
NUMBER_SAID = _plain("a number", WHOLE_TAG, NUMBER_TAG, TEXT_TAG, text=NUMBER_TEXT)
NUMBER_OR_TEXT = _plain("a number or a string", WHOLE_TAG, NUMBER_TAG, TEXT_TAG)
WHOLE_OR_TEXT = _plain("a whole number or a string", WHOLE_TAG, TEXT_TAG)
DURATION = _plain("a string such as 30s or 1m30s", TEXT_TAG, text=DURATION_TEXT)
# docker-compose 1 also takes strings such as 50ms, version 2 does not.
TIME = _plain("microseconds, such as 50000", WHOLE_TAG)
COUNT = _plain("a whole number, such as 512", WHOLE_TAG, TEXT_TAG, text=WHOLE_TEXT)
SIZE = _plain("a size such as 64m", WHOLE_TAG, NUMBER_TAG, TEXT_TAG, text=SIZE_TEXT)
WHOLE_SIZE = _plain("a size such as 64m", WHOLE_TAG, TEXT_TAG, text=SIZE_TEXT)
SIZE_IN_TEXT = _plain("a size such as 64M", TEXT_TAG, text=SIZE_TEXT)
SIGNAL = _plain("a signal such as SIGTERM, or its number", TEXT_TAG, text=SIGNAL_TEXT)
FOLDER = _plain("an absolute path in the container", TEXT_TAG, text=FOLDER_TEXT)
TEXTS = ListOf("a list of strings", TEXT)
TEXT_OR_TEXTS = OneOf("a string or a list of strings", (TEXT, TEXTS))
WORDS = OneOf("a string or a list of strings", (TEXT, ListOf("a list of strings", TEXT, False)))
_VALUE = _plain("a string or a number", TEXT_TAG, WHOLE_TAG, NUMBER_TAG, NULL_TAG)
PAIRS = OneOf("NAME: VALUE, or a list of NAME=VALUE", (MapOf("NAME: VALUE", _VALUE), TEXTS))
_OPTION = _plain("a string or a number", TEXT_TAG, WHOLE_TAG, NUMBER_TAG)
OPTIONS = MapOf("NAME: VALUE", _OPTION)


def _within(kind: Plain, least: float, most: float | None = None) -> Plain:
    bounds = f"from {least:g} to {most:g}" if most is not None else f"of at least {least:g}"
    return Plain(f"{kind.words} {bounds}", kind.tags, kind.text, least, most)


def _keys(
    words: str,
    known: Mapping[str, Kind],
    newer: str = "",
    required: str = "",
    unrun: str = "",
    *,
    is_open: bool = True,
) -> KnownKeys:
    return KnownKeys(
        words,
        known,
        frozenset(newer.split()),
        tuple(required.split()),
        is_open,
        frozenset(unrun.split()),
    )


def _all(kind: Kind, names: str) -> dict[str, Kind]:
    return dict.fromkeys(names.split(), kind)


# The parts of a service.

_HANDED = OneOf(
    "a name, or a mapping with source and target",
    (
        TEXT,
        _keys("an entry of secrets or configs", {**_all(TEXT, "source target uid gid"),
              "mode": Plain("a number", NUMBER.tags | {TEXT_TAG}, WHOLE_TEXT)},
              required="source"),
    ),
)  # fmt: skip
_PACE = _keys(
    "update_config",
    {
        "parallelism": WHOLE_SAID,
        **_all(DURATION, "delay monitor"),
        "failure_action": TEXT,
        "max_failure_ratio": NUMBER_SAID,
        "order": _plain(
            "start-first or stop-first", TEXT_TAG, text=re.compile("start-first|stop-first")
        ),
    },
)
_DEVICES = ListOf(
    "a list of mappings",
    _keys("a device", {**_all(TEXTS, "capabilities device_ids"), "count": WHOLE_OR_TEXT,
          "driver": TEXT, "options": PAIRS}),
    False,
)  # fmt: skip
_GENERIC = ListOf(
    "a list of mappings",
    _keys("a generic resource", {"discrete_resource_spec": _keys(
        "discrete_resource_spec", {"kind": TEXT, "value": NUMBER})}),
    False,
)  # fmt: skip
RESOURCES = _keys(
    "resources",
    {
        "limits": _keys("limits", {"cpus": NUMBER_SAID, "memory": SIZE_IN_TEXT}, newer="pids"),
        "reservations": _keys("reservations", {"cpus": NUMBER_OR_TEXT, "memory": SIZE_IN_TEXT,
                              "generic_resources": _GENERIC, "devices": _DEVICES}),
    },
)  # fmt: skip
DEPLOY = _keys(
    "deploy",
    {
        **_all(TEXT, "mode endpoint_mode"),
        "replicas": WHOLE_SAID,
        "labels": PAIRS,
        **_all(_PACE, "rollback_config update_config"),
        "resources": RESOURCES,
        "restart_policy": _keys(
            "restart_policy",
            {"condition": TEXT, **_all(DURATION, "delay window"), "max_attempts": WHOLE_SAID},
        ),
        "placement": _keys("placement", {
            "constraints": ListOf("a list of strings", TEXT, False),
            "preferences": ListOf(
                "a list of mappings", _keys("a preference", {"spread": TEXT}), False),
            "max_replicas_per_node": WHOLE_SAID,
        }),
    },
)  # fmt: skip
_HEALTH = _keys(
    "healthcheck",
    {
        "disable": FLAG_SAID,
        **_all(DURATION, "interval timeout start_period"),
        "retries": NUMBER_SAID,
        "test": WORDS,
    },
    newer="start_interval",
)
_PORT = OneOf(
    "PORT, HOST:PORT, ADDRESS:HOST:PORT, or a mapping with target",
    (
        Plain("PORT, HOST:PORT or ADDRESS:HOST:PORT", NUMBER.tags | {TEXT_TAG}, PORT_TEXT),
        _keys("a port", {**_all(TEXT, "mode protocol"), **_all(WHOLE_SAID, "target published")},
              newer="host_ip name app_protocol", required="target"),
    ),
)  # fmt: skip
_VOLUME = OneOf(
    "SOURCE:TARGET, or a mapping with type, source and target",
    (
        TEXT,
        _keys(
            "a volume",
            {
                **_all(TEXT, "type source target consistency"),
                "read_only": FLAG_SAID,
                "bind": _keys(
                    "bind", {"propagation": TEXT}, "create_host_path selinux recursive"
                ),
                "volume": _keys("volume", {"nocopy": FLAG_SAID}, "subpath labels"),
                "tmpfs": _keys("tmpfs", {"size": _within(WHOLE_SIZE, 0)}, "mode"),
            },
            newer="image",
            required="type",
        ),
    ),
)
_JOINED = OneOf(
    "nothing, or a mapping",
    (
        _plain("nothing", NULL_TAG),
        _keys("a network of a service", {**_all(TEXTS, "aliases link_local_ips"),
              **_all(TEXT, "ipv4_address ipv6_address"), "priority": NUMBER},
              newer="mac_address driver_opts gw_priority interface_name"),
    ),
)  # fmt: skip
_CONDITIONS = re.compile("service_started|service_healthy|service_completed_successfully")
_DEPENDENCY = _keys(
    "an entry of depends_on",
    {"condition": _plain("service_started, service_healthy or service_completed_successfully",
                         TEXT_TAG, text=_CONDITIONS)},
    newer="restart required",
    required="condition",
)  # fmt: skip
_DISK = ListOf(
    "a list of mappings",
    _keys("a limit", {"path": TEXT, "rate": WHOLE_OR_TEXT}, is_open=False),
    False,
)
_ULIMIT = OneOf(
    "a number, or a mapping with soft and hard",
    (WHOLE_SAID, _keys("a ulimit", _all(WHOLE_SAID, "soft hard"), required="soft hard")),
)
# Of files beside the definition a stage has none there.
_FILE = _plain("the absolute path of a file on the worker's host", TEXT_TAG,
                    text=re.compile("/.*", re.DOTALL))  # fmt: skip
# One from the attempt's own folder neither: that is new, and empty.
_HANDED_TEXT = re.compile(r"(/|~|\$\{(?!TIDEWHEEL_JOB_FILES)).*", re.DOTALL)
_HANDED_FILE = _plain(_FILE.words, TEXT_TAG, text=_HANDED_TEXT)
_PULLS = re.compile("always|never|if_not_present|build")
BUILD = OneOf(
    "a folder, or a mapping with context",
    (
        TEXT,
        _keys("build", {**_all(TEXT, "context dockerfile network target isolation"),
              **_all(PAIRS, "args labels extra_hosts"), "shm_size": WHOLE_OR_TEXT,
              "cache_from": ListOf("a list of strings", TEXT, False)},
              newer="additional_contexts cache_to dockerfile_inline entitlements no_cache "
              "platforms privileged pull secrets ssh tags ulimits provenance sbom"),
    ),
)  # fmt: skip

SERVICE = _keys(
    "a service",
    {
        **_all(TEXT, "cgroup_parent container_name cpuset domainname hostname image ipc"),
        **_all(TEXT, "isolation mac_address network_mode platform runtime"),
        **_all(TEXT, "user userns_mode"),
        "stop_signal": SIGNAL,
        "working_dir": FOLDER,
        **_all(TEXTS, "cap_add cap_drop device_cgroup_rules devices dns_opt external_links"),
        **_all(TEXTS, "links profiles"),
        **_all(TEXT_OR_TEXTS, "dns dns_search tmpfs"),
        **_all(WORDS, "command entrypoint"),
        **_all(PAIRS, "environment extra_hosts labels sysctls"),
        **_all(FLAG_SAID, "oom_kill_disable privileged read_only stdin_open tty"),
        **_all(SIZE, "mem_limit memswap_limit shm_size"),
        **_all(TIME, "cpu_period cpu_quota cpu_rt_period cpu_rt_runtime"),
        **_all(COUNT, "cpu_shares pids_limit"),
        **_all(ListOf("a list", _HANDED, False), "configs secrets"),
        "blkio_config": _keys("blkio_config", {
            **_all(_DISK, "device_read_bps device_read_iops"),
            **_all(_DISK, "device_write_bps device_write_iops"),
            "weight": WHOLE_SAID,
            "weight_device": ListOf("a list of mappings", _keys(
                "a weight", {"path": TEXT, "weight": WHOLE_SAID}), False)}, is_open=False),
        "build": BUILD,
        "cpu_count": _within(WHOLE_SAID, 0),
        "cpu_percent": _within(WHOLE, 0, 100),
        "cpus": NUMBER_SAID,
        "credential_spec": _keys("credential_spec", _all(TEXT, "config file registry")),
        "depends_on": OneOf("a list of services, or a mapping of them",
                            (TEXTS, MapOf("SERVICE: {condition: …}", _DEPENDENCY, NAME_TEXT))),
        "deploy": OneOf("a mapping", (_plain("nothing", NULL_TAG), DEPLOY)),
        "env_file": OneOf(_FILE.words, (_FILE, ListOf("a list of files", _FILE))),
        "expose": ListOf("a list of ports", Plain(
            "a port", NUMBER.tags | {TEXT_TAG}, EXPOSED_TEXT)),
        "extends": OneOf("a service, or a mapping with service", (
            TEXT, _keys("extends", _all(TEXT, "service file"), required="service"))),
        "group_add": ListOf("a list of groups", NUMBER_OR_TEXT),
        "healthcheck": _HEALTH,
        "init": FLAG,
        "logging": _keys("logging", {"driver": TEXT, "options": MapOf("NAME: VALUE", _VALUE)}),
        "mem_reservation": WHOLE_SIZE,
        "mem_swappiness": WHOLE_SAID,
        "networks": OneOf("a list of networks, or a mapping of them",
                          (TEXTS, MapOf("NETWORK: {aliases: […]}", _JOINED, NAME_TEXT))),
        "oom_score_adj": _within(WHOLE_SAID, -1000, 1000),
        "pid": _plain("a string", TEXT_TAG, NULL_TAG),
        "ports": ListOf("a list of ports", _PORT),
        "pull_policy": _plain("always, never, if_not_present or build", TEXT_TAG, text=_PULLS),
        "restart": _plain("no, always, unless-stopped or on-failure:3", TEXT_TAG,
                          text=RESTART_TEXT),
        "scale": WHOLE_SAID,
        "security_opt": ListOf("a list of NAME:VALUE", _plain(
            "NAME:VALUE or no-new-privileges", TEXT_TAG, text=SECURITY_TEXT)),
        "stop_grace_period": DURATION,
        "storage_opt": MapOf("NAME: VALUE", _VALUE),
        "ulimits": MapOf("NAME: NUMBER", _ULIMIT, ULIMIT_NAME),
        "volumes": ListOf("a list of volumes", _VOLUME),
        "volumes_from": ListOf("a list of services", _plain(
            "SERVICE, SERVICE:MODE or container:NAME", TEXT_TAG, text=SOURCE_TEXT)),
    },
    newer="annotations attach cgroup develop gpus label_file models post_start pre_stop "
    "provider use_api_socket uts",
    unrun="credential_spec develop models post_start pre_stop provider storage_opt",
)  # fmt: skip

# Networks, volumes, secrets, configs, and the file itself.

_EXTERNAL = OneOf("true or false", (FLAG_SAID, _keys("external", {"name": TEXT})))
_NOTHING = _plain("nothing", NULL_TAG)
_SUBNET = _keys(
    "an entry of config",
    {
        "subnet": _plain("a subnet such as 10.1.0.0/16", TEXT_TAG, text=SUBNET_TEXT),
        **_all(TEXT, "ip_range gateway"),
        "aux_addresses": MapOf("NAME: ADDRESS", TEXT),
    },
)
NETWORK = _keys(
    "a network",
    {
        **_all(TEXT, "name driver"),
        "driver_opts": OPTIONS,
        "ipam": _keys("ipam", {"driver": TEXT, "options": MapOf("NAME: VALUE", TEXT),
                      "config": ListOf("a list of mappings", _SUBNET, False)}),
        "external": _EXTERNAL,
        **_all(FLAG_SAID, "internal attachable"),
        "enable_ipv6": FLAG,
        "labels": PAIRS,
    },
    newer="enable_ipv4",
)  # fmt: skip
VOLUME = _keys(
    "a volume",
    {
        **_all(TEXT, "name driver"),
        "driver_opts": OPTIONS,
        "external": _EXTERNAL,
        "labels": PAIRS,
    },
)
CONFIG = _keys(
    "a config",
    {
        **_all(TEXT, "name template_driver"),
        "file": _HANDED_FILE,
        "external": _EXTERNAL,
        "labels": PAIRS,
    },
    newer="content environment",
)
SECRET = _keys(
    "a secret",
    {**CONFIG.known, "driver": TEXT, "driver_opts": OPTIONS},
    newer="environment",
)


def _named(each: KnownKeys, *, may_be_empty: bool) -> MapOf:
    kind = OneOf("a mapping", (_NOTHING, each)) if may_be_empty else each
    return MapOf(f"NAME: and under it {each.words}", kind, NAME_TEXT)


FILE = _keys(
    "a compose file",
    {
        "version": TEXT,
        "services": _named(SERVICE, may_be_empty=False),
        "networks": _named(NETWORK, may_be_empty=True),
        "volumes": _named(VOLUME, may_be_empty=True),
        "secrets": _named(SECRET, may_be_empty=False),
        "configs": _named(CONFIG, may_be_empty=False),
    },
    newer="name include models",
    unrun="models",
)

# What people write and engines call otherwise.
MEANT = {(SERVICE.words, "args"): "write command: [word, word] for its arguments"}
