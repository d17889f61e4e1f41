"""The examples on published models, at small sizes; scripts/test published installs the models."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.test_examples import check_picture

WHERE = "is not installed; scripts/test published installs it"


def test_a_recogniser_reads_a_line_otherwise(tmp_path: Path):
    pytest.importorskip("rapidocr_onnxruntime", reason=f"rapidocr-onnxruntime {WHERE}")
    from examples import misread_line

    ocr = misread_line.engine()
    found = misread_line.run(ocr)
    texts = {name: [said.text for said in f.read.values()] for name, f in found.items()}
    shown, aim = misread_line.SHOWN, misread_line.AIM
    assert texts["cv2 linear"] == [aim, shown, shown]  # the others read what people do
    assert texts["Pillow bilinear"] == [aim] * 3
    assert found["cv2 linear"].read["cv2 linear"].score > 0.99
    assert found["cv2 linear"].changed < 10 < 25 < found["Pillow bilinear"].changed
    later = misread_line.afterwards(ocr, found["cv2 linear"].image)
    assert later["JPEG, quality 75"].text == aim
    assert later["cut by 1 row(s), 1 column(s)"].text == shown
    assert "**98.20" in misread_line.table(found)
    out = tmp_path / "out.png"
    misread_line.draw(found, out)
    check_picture(out)


def test_a_recognisers_preprocessing_is_named_and_put_into_a_loop(tmp_path: Path):
    pytest.importorskip("rapidocr_onnxruntime", reason=f"rapidocr-onnxruntime {WHERE}")
    from examples import read_page

    ocr = read_page.engine()
    programs = read_page.programs(ocr)
    names = {name: read_page.identify(programs[name]) for name in ("classifier", "recogniser")}
    for name, found in names.items():
        assert found.arithmetic == "opencv5"
        assert found.rule == "height"
        assert read_page.differs(programs[name], found, 5) < 1e-4  # the last bits of floats
    twin = names["recogniser"].pipeline
    assert read_page.apart(ocr, twin, 4.0) < 1e-4
    own, *_, antialiased = read_page.loops(twin).values()
    made = {"own": read_page.attack(ocr, own, 0.0, 100)}
    assert made["own"].read == read_page.AIM
    made["antialiased"] = read_page.attack(ocr, antialiased, 0.0, 10)
    assert len(read_page.table({0.0: made}).splitlines()) == 4
    assert min(read_page.times(ocr, twin, 1).values()) > 0
    out = tmp_path / "out.png"
    read_page.draw({0.0: made, 4.0: made}, out)
    check_picture(out)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # facenet-pytorch's torch.load
def test_a_face_is_hidden_by_the_programs_own_resize_alone(tmp_path: Path):
    pytest.importorskip("facenet_pytorch", reason=f"facenet-pytorch {WHERE}")
    from examples import hide_face

    model = hide_face.detector()
    original = (hide_face.photograph() * 255).byte()
    assert (hide_face.program(model, original) or 0) > 0.99
    found = {name: hide_face.hide(model, name) for name in hide_face.RESIZES}
    own, *_, plain = found.values()
    assert own.score is None
    assert own.loop == own.real < 0.6  # MTCNN's first threshold
    assert plain.score is not None  # the loop believes that it hides the face, and does not
    assert plain.loop < 0.2 < 0.9 < plain.real
    assert 0 <= hide_face.hidden_under_poses(model, own.image, 4) <= 1
    assert "**no face**" in hide_face.table({12: found})
    out = tmp_path / "out.png"
    hide_face.draw(found, out)
    check_picture(out)
