"""Names that try to be more than text: one list for every command, page and format."""

PAYLOADS = {
    "clears the screen": "\x1b[2J\x1b]0;title\x07",
    "a control of eight bits": "red \x9b31m",
    "turns the text around": "\u202egnp.exe",
    "a form feed": "a\x0cb",
    "a line of its own": "x\nPASS forged",
    "an order to a build": "::error::x",
    "an order to another build": "##vso[task.complete result=Failed]",
    "a script": "<script>window.harmed = 1</script>",
    "an image": '"><img src=x onerror="window.harmed = 1">',
    "a link": "[a](javascript:window.harmed=1)",
    "a formula": "=cmd|'/c calc'!A1",
    "a backslash at the end": "ends in \\",
    "a tab at the end": "ends in\t",
    "an end of data": "]]> --> </script>",
    "a pattern": "^.*$",
    "a star": "*",
    "no character": "\ufffe",
}
