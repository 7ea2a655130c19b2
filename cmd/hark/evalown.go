package main

import "github.com/spf13/cobra"

func newEvalOwn(a *app) *cobra.Command { return &cobra.Command{Use: "own"} }
