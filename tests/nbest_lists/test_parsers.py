import shlex
import sys

import pytest

from demur.errors import DataError, UsageError
from demur.nbest_lists.asr.scorers import CommandParser, command_parser, parse_each


def program(code):
    return command_parser(shlex.join([sys.executable, "-c", code]))


UPPER = "import sys\nfor line in sys.stdin: print(f'say(text={line.strip()})')"


def test_a_program_answers_one_line_for_each_sentence():
    assert program(UPPER).parse_all(["thai food", "bye"]) == ["say(text=thai food)", "say(text=bye)"]
    assert program(UPPER)("bye") == "say(text=bye)"


def test_a_sentence_stays_on_one_line_and_an_empty_answer_is_an_answer():
    assert program("import sys\nfor line in sys.stdin: print(line.strip())").parse_all(["a\nb", "", "c"]) == [
        "a b",
        "",
        "c",
    ]


def test_no_sentences_need_no_program():
    assert CommandParser(("no-such-program",)).parse_all([]) == []


def test_the_command_is_not_run_by_a_shell():
    assert command_parser("echo '$HOME' ; ls").command == ("echo", "$HOME", ";", "ls")


def test_a_program_that_answers_too_little_is_refused():
    with pytest.raises(DataError, match='must answer each sentence with one line; got "1 lines for 2 sentences"'):
        program("import sys; sys.stdin.read(); print('bye()')").parse_all(["a", "b"])


def test_a_program_that_fails_is_quoted():
    with pytest.raises(DataError, match="failed with exit code 3: no model here"):
        program("import sys; print('x\\nno model here', file=sys.stderr); sys.exit(3)").parse_all(["a"])


def test_a_program_that_fails_without_a_word_is_told_of():
    with pytest.raises(DataError, match="exit code 1: it said nothing on standard error"):
        program("import sys; sys.exit(1)").parse_all(["a"])


def test_a_program_that_does_not_answer_in_text_is_refused():
    with pytest.raises(DataError, match="must answer in UTF-8"):
        program("import sys; sys.stdout.buffer.write(b'\\xff\\n')").parse_all(["a"])


def test_a_program_that_is_not_there_is_named():
    with pytest.raises(UsageError, match='the parser "no-such-program" cannot be run'):
        command_parser("no-such-program --fast")("a")


@pytest.mark.parametrize(("command", "fault"), [("  ", "is empty"), ("a 'b", "cannot be split into words: No closing")])
def test_a_command_that_is_none_is_refused(command, fault):
    with pytest.raises(UsageError, match=fault):
        command_parser(command)


def test_each_distinct_sentence_is_parsed_once():
    seen = []

    def parse(text):
        seen.append(text)
        return text

    assert parse_each(parse, ["b", "a", "b"]) == {"b": "b", "a": "a"}
    assert seen == ["b", "a"]


def test_a_program_is_run_once_for_all():
    code = "import sys\nlines = sys.stdin.readlines()\nfor line in lines: print(f'n(count={len(lines)})')"
    assert parse_each(program(code), ["b", "a", "b"]) == {"b": "n(count=2)", "a": "n(count=2)"}


def test_an_answer_that_is_no_text_is_refused_with_the_sentence():
    with pytest.raises(DataError, match='the parser\'s answer to "thai" must be text; got "None"'):
        parse_each(lambda _: None, ["thai"])
