"""Seed 004, "Examples": its blocks, written again by us with the seed's peculiarities."""

FIRST_YAML = "schema_version: '2.0'\nstages: []\n"
FIRST_JSON = '{\n  "schema_version": "2.0",\n  "stages": []\n}\n'
SIMPLE_YAML = """\
schema_version: 2.0
stages:
  - id: prepare
    version: 1.0.0
    type: setup
    timeout: 60s
    resources:
      - type: cpu
        value: 0.1
  - id: reduce
    version: 1.0.0
    type: processing
    timeout: 60s
    dependencies:
      - type: stage
        value: stage-01
        condition: complete
    resources:
      - type: nodes
        flavour: compute_a
        number: 10
        exclusive: true
"""
SIMPLE_JSON = """\
{
  "schema_version": "2.0",
  "stages": [
  {
    "id": "prepare",
    "version": "1.0.0",
    "type": "setup",
    "timeout": "60s",
    "resources": [{"type": "cpu", "value": 0.1}]
  },
  {
    "id": "reduce",
    "version": "1.0.0",
    "type": "processing",
    "timout": "20m",
    "resources": [
      {"type": "nodes", "number": 10, "flavour": "compute_a", "exclusive": true}
    ]
  }
  ]
}
"""
TEMPLATE = """\
schema_version: 2.0
stages:
    - id: stage-a
      version: 1.0.0
      type: setup
      timeout: 30s
      resources:
        - type: cpu
          value: 0.5
    - id: stage-b
      version: 1.0.0
      type: processing
      timeout: {{ longest }}
      dependencies:
        - type: stage
          value: stage-a
          condition: complete
      resources:
        - type: node
          flavour: compute_a
          number: {{ how_many }}
          exclusive: true
"""
REQUEST = {"longest": "20s", "how_many": 10}  # the sixth block: parameters of a request
