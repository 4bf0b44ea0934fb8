"""Workflows that the browser looks at, with every hostile text that a definition can hold."""

# What would run, lead elsewhere or turn the page around, if anything of it were obeyed (S10).
MARKUP = "<img src=x onerror=window.hit=1><script>window.hit=2</script>"
LINK = "javascript:window.hit=3"
BIDI = "\u202egnp.exe\u2066"
HOSTILE = f"{MARKUP} {LINK} {BIDI}"

NOISY = f"""
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 4
    stop after cycle point = 2
    runahead limit = P4
    [[graph]]
        P1 = '''
            gauge => tide => merge => plot
            merge[-P1] => merge
            lonely
        '''
[runtime]
    [[root]]
        script = true
    [[lonely, plot]]
    [[gauge]]
        script = \"\"\"
            echo first
            while test $CYLC_TASK_CYCLE_POINT = 2 -a ! -e {{gate}}; do sleep 0.1; done
            echo last
        \"\"\"
    [[tide]]
        script = \"\"\"
            for i in $(seq 1 400); do printf '\\033[32mstep %s\\033[0m done\\n' $i; done
            printf '\\033]0;title\\007\\033]8;;{LINK}\\007a link\\033]8;;\\007 '
            printf '{MARKUP} {BIDI}\\n'
            echo '{MARKUP}' >&2
            cylc message -- "CUSTOM:{MARKUP} {BIDI}"
        \"\"\"
        [[[environment]]]
            HARMLESS = {HOSTILE}
        [[[meta]]]
            title = {HOSTILE}
    [[merge]]
        script = test $CYLC_TASK_CYCLE_POINT = 1
        [[[meta]]]
            description = {HOSTILE}
        [[[outputs]]]
            half = {MARKUP}
"""

# Names may have percent signs, and be words that every object of a script has.
ODD_RUN = "x%2F..%2F..%3Cimg%20src%3Dx%20onerror%3Dwindow.hit%3D4%3E"
ODD_TASKS = ("__proto__", "constructor", "a%2F%2E%2E%2Ftokens%3F", "a%3Cscript%3E@%")
ODD = f"""
[scheduling]
    [[graph]]
        R1 = {" => ".join(ODD_TASKS)}
[runtime]
    [[toString]]
        script = true
    [[{", ".join(ODD_TASKS)}]]
        inherit = toString
    # It stalls there, and waits for somebody.
    [[{ODD_TASKS[-1]}]]
        script = false
"""
