import math

import numpy as np
import pytest
import torch
from scipy.interpolate import RBFInterpolator

from vton.inference import Conditions, warp_by
from vton.networks.config import LITE
from vton.networks.losses import second_order
from vton.networks.warping import (
    EXTENT,
    MatchingModule,
    control_grid,
    correlation,
    jacobian,
    match,
    refine,
    sampling_grid,
    spline_matrix,
    warp,
    warp_inside,
)


def places(height, width):
    ys, xs = np.linspace(-EXTENT, EXTENT, height), np.linspace(-EXTENT, EXTENT, width)
    return np.stack(np.meshgrid(xs, ys), -1)


@pytest.mark.parametrize("n, size", [(5, (32, 24)), (5, (17, 40)), (10, (24, 18)), (20, (16, 12))])
def test_equals_scipys_thin_plate_spline(n, size):
    theta = torch.from_numpy(np.random.default_rng(n).normal(0, 0.1, (2, 2 * n * n)).astype(np.float32))
    grid = sampling_grid(theta, size)
    points = control_grid(n).double().numpy()
    for one, offsets in zip(grid, theta):
        targets = points + offsets.reshape(2, -1).T.double().numpy()
        reference = RBFInterpolator(points, targets, kernel="thin_plate_spline")(places(*size).reshape(-1, 2))
        np.testing.assert_allclose(one.reshape(-1, 2), reference, atol=1e-4)


def test_zero_is_the_identity():
    np.testing.assert_allclose(sampling_grid(torch.zeros(1, 50), (9, 7))[0], places(9, 7), atol=1e-5)


def test_affine_offsets_give_an_affine_grid():
    points = control_grid(5)
    matrix, shift = torch.tensor([[0.8, 0.2], [-0.1, 1.1]]), torch.tensor([0.05, -0.1])
    theta = (points @ matrix.T + shift - points).T.reshape(1, -1)
    wanted = torch.from_numpy(places(12, 9)).float() @ matrix.T + shift
    torch.testing.assert_close(sampling_grid(theta, (12, 9))[0], wanted, atol=1e-5, rtol=0)


def test_control_points_arrive():
    theta = torch.from_numpy(np.random.default_rng(0).normal(0, 0.1, (1, 50)).astype(np.float32))
    at_points = sampling_grid(theta, (5, 5))[0]  # a 5x5 picture samples exactly the control points
    wanted = (control_grid(5) + theta.reshape(2, -1).T).reshape(5, 5, 2).transpose(0, 1)  # x varies slowest
    torch.testing.assert_close(at_points, wanted, atol=1e-4, rtol=0)


def test_gradients():
    theta = torch.zeros(1, 50, dtype=torch.float64).uniform_(-0.1, 0.1, generator=torch.Generator().manual_seed(0))
    assert torch.autograd.gradcheck(lambda t: sampling_grid(t, (3, 4)), theta.requires_grad_(True), atol=1e-6)


def test_wrong_number_of_offsets_is_named():
    with pytest.raises(ValueError, match="got 49 numbers"):
        sampling_grid(torch.zeros(1, 49), (4, 4))


def test_positive_x_offsets_look_further_right_in_the_cloth():
    cloth = torch.linspace(-1, 1, 64).expand(1, 1, 48, 64).contiguous()
    theta = torch.zeros(1, 50)
    theta[:, :25] = 0.2
    moved, still = warp(cloth, sampling_grid(theta, (48, 64))), warp(cloth, sampling_grid(torch.zeros(1, 50), (48, 64)))
    assert (moved - still)[..., 10:40].mean() == pytest.approx(0.2, abs=0.02)


def test_jacobian_of_identity_is_one_and_of_a_fold_negative():
    torch.testing.assert_close(
        jacobian(sampling_grid(torch.zeros(1, 50), (20, 15))), torch.ones(1, 19, 14), atol=1e-3, rtol=0
    )
    mirrored = (-2 * control_grid(5) * torch.tensor([1.0, 0.0])).T.reshape(1, -1)
    assert jacobian(sampling_grid(mirrored, (20, 15))).max() < 0


def test_a_turned_cloth_is_neither_folded_nor_larger_and_a_mirrored_one_is_turned_over():
    grid = sampling_grid(torch.zeros(1, 50), (40, 40))
    angle = math.radians(35)
    turn = torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    torch.testing.assert_close(jacobian(grid @ turn), torch.ones(1, 39, 39), atol=1e-3, rtol=0)
    torch.testing.assert_close(jacobian((grid @ turn).flip(-1)), -torch.ones(1, 39, 39), atol=1e-3, rtol=0)


def test_correlation_in_plain_loops():
    rng = torch.Generator().manual_seed(0)
    person, cloth = torch.rand(2, 5, 4, 3, generator=rng), torch.rand(2, 5, 4, 3, generator=rng)
    result = correlation(person, cloth)
    for b in range(2):
        for x in range(3):
            for y in range(4):
                a = person[b, :, y, x] / person[b, :, y, x].norm()
                for v in range(4):
                    for u in range(3):
                        c = cloth[b, :, v, u] / cloth[b, :, v, u].norm()
                        assert result[b, x * 4 + y, v, u] == pytest.approx(float(a @ c), abs=1e-5)


def test_second_order_is_zero_for_affine_grids_and_counts_by_hand():
    points = control_grid(5)
    affine = (points @ torch.tensor([[0.7, 0.3], [0.1, 0.9]]).T - points).T.reshape(1, -1)
    assert second_order(affine) == pytest.approx(0, abs=1e-4)
    assert second_order(torch.zeros(1, 50)) == pytest.approx(0, abs=1e-4)
    # Move the middle point by d to the right: its own left and right distances differ by 2 d, its vertical neighbours
    # bend by 2 d / sqrt(1 + d^2) ... to first order; its four neighbours see one of their distances or directions
    # change.
    d, h = 1e-3, 0.45
    theta = torch.zeros(1, 50)
    theta[0, 12] = d
    horizontal = 2 * d + d + d  # the point itself, the inner points at its left and right
    bends = (2 * d / h) + (d / h) + (d / h)  # the point itself, the inner points above and below
    assert second_order(theta) == pytest.approx(horizontal + bends, rel=0.02)


def test_every_parameter_of_the_module_gets_a_gradient():
    network = MatchingModule(LITE.matching)
    theta = network(torch.rand(2, 7, 256, 192), torch.rand(2, 3, 256, 192))
    assert theta.shape == (2, 50)
    sampling_grid(theta, (16, 12)).square().sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in network.parameters())


def test_matrix_is_shared_between_calls():
    assert spline_matrix(5, 8, 6) is spline_matrix(5, 8, 6)


def test_a_finer_spline_looks_where_the_coarse_one_does_at_its_own_points():
    torch.manual_seed(4)
    theta = torch.randn(2, 2 * 5**2) * 0.1
    assert refine(theta, 5) is theta
    fine = refine(theta, 10)
    assert fine.shape == (2, 2 * 10**2)
    # Columns and rows of a 10 x 10 grid are the new control points; a spline passes through its points.
    torch.testing.assert_close(sampling_grid(fine, (10, 10)), sampling_grid(theta, (10, 10)), atol=1e-5, rtol=0)
    moved = (sampling_grid(fine, (64, 48)) - sampling_grid(theta, (64, 48))).abs().max()
    assert moved < 0.05  # and is near between them


def test_beyond_its_border_a_picture_goes_on_and_a_mask_ends():
    picture = torch.rand(1, 3, 6, 4)
    aside = torch.tensor([[[[-3.0, -3.0], [3.0, 3.0]]]])
    torch.testing.assert_close(warp(picture, aside)[0, :, 0], picture[0, :, [0, 5], [0, 3]])
    assert warp(picture, aside, "zeros").abs().max() == 0


def test_a_print_stays_sharper_than_in_the_release_and_in_its_range():
    stripes = (torch.arange(96) * (math.pi / 3)).sin().expand(1, 3, 128, 96).contiguous()  # six pixels wide
    empty = torch.zeros(1, 3, 128, 96)
    given = Conditions(empty, empty, stripes, torch.ones(1, 1, 128, 96))
    theta = torch.zeros(1, 50)
    ours, released = (warp_by(sampling_grid(theta, (128, 96)), given, soft_mask=soft) for soft in (False, True))

    assert float(ours.cloth.std()) > 1.05 * float(released.cloth.std())  # the grid lies between the pixels
    assert float(ours.cloth.std()) < 1.02 * float(stripes.std()) and float(ours.cloth.abs().max()) <= 1
    exact = torch.nn.functional.grid_sample(stripes, released.grid, padding_mode="border", align_corners=False)
    torch.testing.assert_close(released.cloth, exact)


def test_the_ground_of_the_picture_does_not_show_at_the_outline_of_the_warped_garment():
    mask = torch.zeros(1, 1, 128, 96)
    mask[..., 30:100, 20:70] = 1
    dark = torch.where(mask > 0, -0.9, 0.93).expand(1, 3, -1, -1)
    torch.manual_seed(5)
    grid = sampling_grid(torch.randn(1, 50) * 0.05, (128, 96))
    inside = (warp(mask, grid, "zeros") > 0.5).expand(-1, 3, -1, -1)
    assert warp(dark, grid, sampling="bicubic")[inside].max() > -0.5  # gray between the two
    assert warp_inside(dark, mask, grid)[inside].max() < -0.85
    empty = torch.zeros(1, 3, 128, 96)
    assert warp_by(grid, Conditions(empty, empty, dark, mask)).cloth[inside].max() < -0.85
    far = (warp(mask, grid) == 0).expand(-1, 3, -1, -1)
    torch.testing.assert_close(warp_inside(dark, mask, grid)[far], warp(dark, grid, sampling="bicubic")[far])


def test_the_network_reads_region_pose_and_agnostic_in_this_order():
    taken = []

    def network(person, cloth):
        taken.extend((person, cloth))
        return torch.zeros(1, 50)

    region, pose, agnostic, cloth = (torch.full((1, n, 512, 384), float(i)) for i, n in enumerate((1, 3, 3, 3)))
    match(network, region, pose, agnostic, cloth)
    person, seen = taken
    assert person.shape == (1, 7, 256, 192) and seen.shape == (1, 3, 256, 192)
    assert person[0, :, 0, 0].tolist() == [0, 1, 1, 1, 2, 2, 2] and (seen == 3).all()


def test_a_training_may_use_the_matrix_that_a_try_on_has_left():
    spline_matrix.cache_clear()
    with torch.inference_mode():
        sampling_grid(torch.zeros(1, 50), (32, 24))
    theta = torch.zeros(1, 50, requires_grad=True)
    sampling_grid(theta, (32, 24)).sum().backward()
    assert theta.grad is not None and theta.grad.abs().sum() > 0
