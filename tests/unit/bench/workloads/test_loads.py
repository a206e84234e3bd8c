from __future__ import annotations


def test_a_load_says_how_many_results_a_correct_run_puts_out(tmp_path):
    from bench.workloads.loads import make, read

    load = make("records", 250, tmp_path)
    rows = read(str(load.path)) * load.passes
    assert load.count == load.tuples == len(rows) == 250
    assert load.results == sum((value + 1) % 2 == 0 for _, value in rows)


def test_a_load_of_sentences_is_counted_in_words(tmp_path):
    from bench.workloads.loads import make, read

    load = make("sentences", 30, tmp_path)
    rows = read(str(load.path))
    assert load.results == load.tuples == sum(len(line.split()) for _, line in rows) == 300
    assert {key for key, _ in rows} == {None}


def test_a_large_load_is_the_same_rows_again_and_again(tmp_path):
    from bench.workloads.loads import DISTINCT, make, read

    load = make("sentences", 3 * DISTINCT["sentences"], tmp_path)
    assert load.passes == 3
    assert load.count == 3 * len(read(str(load.path)))


def test_words_follow_zipf():
    from collections import Counter

    from bench.workloads.loads import sentences

    counts = Counter(word for line in sentences(5_000) for word in line.split())
    # the second word comes 2 ** 1.1 = 2.14 times less often than the first
    assert 1.9 < counts["w0"] / counts["w1"] < 2.4


def test_the_same_file_more_or_less_often_is_another_load(tmp_path):
    from bench.workloads.loads import DISTINCT, make

    load = make("records", 2 * DISTINCT["records"], tmp_path)
    assert load.again(2.5) == make("records", 5 * DISTINCT["records"], tmp_path)
    assert load.again(0.01) == make("records", DISTINCT["records"], tmp_path)


def test_final_counts_are_those_of_the_last_updates(tmp_path):
    from bench.workloads.loads import make, read

    words = make("sentences", 30, tmp_path)
    assert sum(words.final().values()) == words.tuples
    line = read(str(words.path))[0][1]
    assert words.final()[line.split()[0]] >= 1
    numbers = make("records", 200_000, tmp_path)
    kept = [(key, value + 1) for key, value in read(str(numbers.path)) if (value + 1) % 2 == 0]
    key = kept[0][0]
    assert numbers.final()[key] == numbers.passes * sum(value for each, value in kept if each == key)


def test_a_load_as_plain_text_has_a_row_a_line(tmp_path):
    import pytest

    from bench.workloads.loads import make, read
    from bench.workloads.plain import plain

    words, numbers = make("sentences", 3, tmp_path), make("records", 3, tmp_path)
    assert plain(words.path, tmp_path / "words") == 3
    assert (tmp_path / "words").read_text().splitlines() == [line for _, line in read(str(words.path))]
    assert plain(numbers.path, tmp_path / "numbers") == 3
    rows = [tuple(line.split("\t")) for line in (tmp_path / "numbers").read_text().splitlines()]
    assert rows == [(key, str(value)) for key, value in read(str(numbers.path))]
    (tmp_path / "odd").write_text('"a\\tb"\n')
    with pytest.raises(ValueError, match="cannot be a line of plain text"):
        plain(tmp_path / "odd", tmp_path / "out")
